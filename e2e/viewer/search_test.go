//go:build unix

package viewer_test

import (
	"testing"

	"github.com/chromedp/cdproto/input"

	"github.com/ccship/ccship/e2e/kit"
)

// TestSearchBox: Ctrl-K reaches the box, also on a phone; it completes names, and facets write into it.
func TestSearchBox(t *testing.T) {
	b, _ := reader(t)
	for _, width := range []int64{1280, 390} {
		b.size(width, 844)
		for _, path := range []string{"/", "/sessions/" + taleID, "/usage", "/search?q=hours"} {
			b.open(path)
			k := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Modifiers: 2, Key: "k", Code: "KeyK", WindowsVirtualKeyCode: 'K'}
			call(b, input.DispatchKeyEvent, k)
			k.Type = input.DispatchKeyEventTypeKeyUp
			call(b, input.DispatchKeyEvent, k)
			b.wait("the box has the focus and is in sight on "+path, `((e) => e.id === "find" && ((r) => r.width > 150 && r.top >= 0 && r.bottom <= innerHeight)(e.getBoundingClientRect()))(document.activeElement)`)
			n := b.count(`form[action$="/search"]`)
			kit.Check(t, n == 1, "%s has %d boxes to search everything", path, n)
		}
	}
	b.size(1280, 844)
	b.open("/usage")
	b.pressWait("/", "names are offered", `(document.execCommand("insertText", false, "h"), document.activeElement.value = "hours proj", document.activeElement.dispatchEvent(new Event("input")), document.querySelector("#names option")?.value.startsWith("hours project:"))`)
	b.open("/search?q=hours")
	b.clickWait(".facet a", "the filter stands in the box", `document.querySelector("#find").value.startsWith("hours project:") && document.querySelector('.facet [aria-current="true"]')`)
	b.clickWait(`.facet [aria-current="true"]`, "and leaves it", `document.querySelector("#find").value === "hours"`)
}
