//go:build unix

package viewer_test

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestFirstPromptInSight: on a small laptop's screen the conversation begins high, and its head is one line.
func TestFirstPromptInSight(t *testing.T) {
	b, _ := reader(t)
	b.size(1280, 900)
	for _, id := range []string{taleID, rewrittenID} {
		b.open("/sessions/" + id)
		b.wait("the sessions stand beside", `document.querySelector(".beside[open] .beside-list a")`)
		top := eval[float64](b, `document.querySelector(".item.prompt").getBoundingClientRect().top`)
		kit.Check(t, top < 260, "%s: the first prompt begins at %v", id, top)
		head := eval[float64](b, `document.querySelector(".headline").getBoundingClientRect().height`)
		kit.Check(t, head <= 44, "%s: the head is %v high", id, head)
	}
}

// TestRowsInSight: the list begins high, and its rows are low, whatever their days.
func TestRowsInSight(t *testing.T) {
	b, _ := reader(t)
	b.size(1280, 900)
	for _, path := range []string{"/?by=project", "/?by=day"} {
		b.open(path)
		highest := eval[float64](b, `Math.max(...[...document.querySelectorAll(".row")].map((r) => r.getBoundingClientRect().height))`)
		kit.Check(t, highest <= 56, "%s: a row is %v high", path, highest)
		inSight := eval[int](b, `[...document.querySelectorAll(".row")].filter((r) => r.getBoundingClientRect().bottom <= innerHeight).length`)
		kit.Check(t, inSight >= 8, "%s: %d rows are in sight", path, inSight)
	}
	strip := eval[float64](b, `document.querySelector(".strip").getBoundingClientRect().height`)
	kit.Check(t, strip <= 44, "what runs and what would be lost is %v high: more than a line", strip)
}

// TestNothingOverprints: on a phone no word of a head stands on another.
func TestNothingOverprints(t *testing.T) {
	b, _ := reader(t)
	b.size(390, 844)
	for _, path := range []string{"/", "/sessions/" + taleID} {
		b.open(path)
		over := eval[string](b, `(() => {
			const all = [...document.querySelectorAll(".bar a, .bar button, .headline > *, .toolbar > *, .row .title, .row .facts, .row .numbers")]
				.filter((e) => e.checkVisibility() && !e.closest(".sr") && !e.querySelector(".bar a"));
			const box = new Map(all.map((e) => [e, e.getBoundingClientRect()]));
			const shown = all.filter((e) => box.get(e).right > 0 && box.get(e).left < innerWidth && box.get(e).width > 1);
			const nav = document.querySelector(".nav").getBoundingClientRect();
			for (const a of shown) for (const b of shown) {
				if (a === b || a.contains(b) || b.contains(a)) continue;
				const x = box.get(a), y = box.get(b);
				const right = (r, e) => e.closest(".nav") ? Math.min(r.right, nav.right) : r.right; // it scrolls
				if (Math.min(right(x, a), right(y, b)) - Math.max(x.left, y.left) > 1 && Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top) > 1)
					return a.className + " " + a.textContent.trim().slice(0, 30) + " on " + b.className + " " + b.textContent.trim().slice(0, 30);
			}
			return "";
		})()`)
		kit.Check(t, over == "", "%s: %s", path, over)
	}
}

// TestCodeInTables: a wide table scrolls. It does not break the code in its cells into single letters.
func TestCodeInTables(t *testing.T) {
	b, _ := reader(t)
	b.open("/sessions/" + taleID)
	for _, width := range []int64{390, 1280} {
		b.size(width, 844)
		lines := eval[float64](b, `(() => {
			const md = document.createElement("div"), long = "words_without_a_space_".repeat(6);
			md.className = "md";
			md.innerHTML = "<table><tr><td>1</td><td><code>rounding_mode</code></td><td>" + long + "</td></tr></table>";
			document.querySelector("#items").append(md);
			const code = md.querySelector("code"), height = code.getBoundingClientRect().height;
			md.remove();
			return height / parseFloat(getComputedStyle(document.querySelector("#items")).fontSize);
		})()`)
		kit.Check(t, lines < 2, "at %d pixels a word of code is %v letters high", width, lines)
	}
}
