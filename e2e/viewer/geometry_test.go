//go:build unix

package viewer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"

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

// rewrittenID is a session whose file lost lines when it was rewritten.
const rewrittenID = "8d31c5f0-47be-4a90-b7f2-60c2e1a95d38"

// lastDropped is said in a line that is no longer in the file.
const lastDropped = "Keep the old format as well, for the kiosks"

// gallery is a server with months of invented conversations, for tests that only read.
var gallery struct {
	once  sync.Once
	site  *site
	other string // key of a member who sees none of it
	link  string // path of a link to the tale
	err   error
}

// needGallery starts the gallery at first use.
func needGallery(t testing.TB) *site {
	t.Helper()
	gallery.once.Do(func() {
		gallery.err = errors.New("the gallery could not be hung: see the first test that needed it")
		hang(t)
		gallery.err = nil
	})
	must(t, gallery.err)
	return gallery.site
}

func closeGallery() {
	if gallery.site == nil {
		return
	}
	if err := gallery.site.proc.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// hang starts the server and sends it everything, the oldest first.
func hang(t testing.TB) {
	t.Helper()
	dir := filepath.Join(kit.Workshop(), "gallery")
	must(t, os.Mkdir(dir, 0o700))
	s := kit.Try(openSite(dir)).Must(t)
	gallery.site = s
	s.mustAdmin(t, "user", "add", "robin")
	gallery.other = s.mustAdmin(t, "key", "create", "--user", "robin", "--name", "robins-tower")
	now := time.Now()
	for i, e := range errands {
		p := e.play(now, i)
		must(t, s.send(s.key, where(p.id, e.project, e.desk), p.lines))
	}
	sendRewritten(t, s, now)
	sendRobins(t, s, now)
	main, agent := tale(now)
	x := where(taleID, "harbour", false)
	a := x
	a.id, a.parent = taleID+"/agent-"+taleAgent, taleID
	must(t, s.send(s.key, a, agent.lines))
	must(t, s.send(s.key, x, main.lines))
	layBeside(t, s, x, now)
	s.settled(t)
	for name, body := range map[string]string{"Board with errors": `{"query":"q=board&view=failed"}`,
		"Everything about the night the clocks change": `{"page":"search","query":"q=clock&kind=prompt"}`} {
		must(t, s.posts("PUT", "/api/views/"+url.PathEscape(name), s.key, []byte(body)))
	}
	_, answer, err := s.ask("POST", "/api/sessions/"+taleID+"/share-links", s.key, "", []byte(`{}`))
	must(t, err)
	var made struct{ URL string }
	must(t, json.Unmarshal(answer, &made))
	gallery.link = strings.TrimPrefix(made.URL, s.url)
	kit.Require(t, strings.HasPrefix(gallery.link, "/s/"), "share the tale: %s", answer)
}

// clockNotes is the document that the tale's prompts and answers work on.
const clockNotes = "# Clock changes\n\nA day is **not** 24 hours twice a year.\n\n| night | sailing | shown |\n|---|---|---|\n| 25 October | 02:30 Skerry | twice |\n\n```go\nat := time.Date(y, m, d, s.Hour, s.Minute, 0, 0, b.zone)\n```\n"

// layBeside gives the tale checkpoints, linked documents and a file.
func layBeside(t testing.TB, s *site, x stream, now time.Time) {
	t.Helper()
	must(t, s.sendArtifacts(s.key, x, "checkpoints",
		mark("51b0c4e97a20", "manual", 12, 27_300, now.Add(-96*time.Minute), "The board walks in steps of 24 hours. A test shows it.", "timetable/board.go", "timetable/clock_test.go"),
		mark("7d1e90a3f6c8", "compact", 25, 31_000, now.Add(-60*time.Minute), "Departures are built from calendar dates; both nights are tested. Open: quiet hours, changelog.")))
	after := strings.Replace(clockNotes, "| twice |", "| once, in summer time |", 1) + "\n- *fallback*: of the hour that comes twice the first counts\n"
	gone := version("notes/old-rule.txt", 2, now.Add(-20*time.Minute), "")
	gone["change"] = "deleted"
	delete(gone, "content")
	must(t, s.sendArtifacts(s.key, x, "documents", version("docs/clock.md", 1, now.Add(-100*time.Minute), clockNotes), version("docs/clock.md", 2, now.Add(-50*time.Minute), after),
		version("timetable/board.go", 1, now.Add(-99*time.Minute), boardGo), version("notes/old-rule.txt", 1, now.Add(-98*time.Minute), "Twice a year somebody looks."), gone))
	must(t, s.sendFile(s.key, x, "tool-results/toolu_01Clock.txt", failingTest))
}

// sendRewritten is a session of which a rewrite took two prompts out.
func sendRewritten(t testing.TB, s *site, now time.Time) {
	t.Helper()
	p := &script{id: rewrittenID, cwd: "/home/kim/src/tideboard", branch: "kiosk", model: "claude-sonnet-5-5", at: now.Add(-9 * time.Hour), context: 12_000, fresh: 4000}
	p.prompt("Write the kiosk's data in the new format")
	p.titled("New data format for the kiosks")
	p.say("The kiosk reads `board.json`; I'll version it.")
	kept := len(p.lines)
	p.prompt(lastDropped + " that are not renewed yet.")
	p.say("Then both are written until the last one is renewed: `board.json` and `board.v2.json`.")
	p.prompt("And say which kiosk asks for which.")
	p.say("The access log has it: the path tells.")
	x := where(rewrittenID, "tideboard", false)
	must(t, s.send(s.key, x, p.lines))
	q := *p
	q.lines = append([]string(nil), p.lines[:kept]...)
	q.prompt("Only the new format. The kiosks are renewed on Monday.")
	q.say("Then `board.json` has the new format from Monday on, and nothing else is written.")
	x.generation, x.rewoundTo = 1, int64(kept)
	must(t, s.send(s.key, x, q.lines[kept:]))
}

// sendRobins is a session of another user.
func sendRobins(t testing.TB, s *site, now time.Time) {
	t.Helper()
	p := &script{id: "e2c94b07-10ad-4f6e-8b35-97d0c4f1a682", cwd: "/home/robin/lighthouse", branch: "main", model: "claude-sonnet-5-5", at: now.Add(-26 * time.Hour), context: 9000, fresh: 3000}
	p.prompt("Make a page of the lamps that are due for service")
	p.titled("Service plan for the lamps")
	p.say("Seven are due this month.")
	must(t, s.send(gallery.other, stream{id: p.id, machine: "77aa01be3c52", host: "robins-tower", project: "lighthouse", cwd: p.cwd}, p.lines))
}

// pages are all kinds of pages of the gallery, by name.
func pages() map[string]string {
	return map[string]string{
		"list": "/", "filtered": "/?q=board&model=claude-sonnet-5-5", "conversation": "/sessions/" + taleID, "everything": "/sessions/" + taleID + "?mode=everything",
		"prompts": "/sessions/" + taleID + "?mode=prompts", "agent": "/sessions/" + taleID + "%2Fagent-" + taleAgent, "entry": "/sessions/" + taleID + "/entry/7",
		"compare": "/sessions/" + rewrittenID + "/compare", "search": "/search?q=hours", "nothing": "/search?q=zzzz", "usage": "/usage", "year": "/usage?range=365&by=project",
		"saved": "/?q=board&view=failed", "saved-search": "/search?q=clock+kind:prompt", "drops": "/drops", "why": "/why", "account": "/account", "missing": "/sessions/none", "nowhere": "/nowhere",
		"context": "/sessions/" + taleID + "/context", "document": "/sessions/" + taleID + "/document?path=docs/clock.md", "code": "/sessions/" + taleID + "/document?path=timetable/board.go",
		"deleted": "/sessions/" + taleID + "/document?path=notes/old-rule.txt", "versions": "/sessions/" + taleID + "/document/compare?path=docs/clock.md",
		"file":   "/sessions/" + taleID + "/file?name=tool-results/toolu_01Clock.txt",
		"costly": "/?view=costly", "longest": "/?view=long", "activity": "/activity", "now": "/now", "share": "/sessions/" + taleID + "/share", "links": "/share-links",
		"shared": gallery.link, "shared-agent": gallery.link + "/sessions/" + taleID + "%2Fagent-" + taleAgent, "shared-line": gallery.link + "/sessions/" + taleID + "/entry/7",
	}
}

// unfold opens everything that can be opened, what is fetched for it included.
func unfold(b *tab) {
	b.t.Helper()
	eval[any](b, `document.querySelectorAll("main details").forEach((d) => { d.open = true; })`)
	b.wait("all that unfolds is there", `![...document.querySelectorAll("details[open] > [data-src], details[open][data-src]")].length`)
}

// TestPhone: at the width of a phone no page is wider than the window, with everything unfolded.
func TestPhone(t *testing.T) {
	b, _ := reader(t)
	b.allow("404")
	for _, width := range []int64{390, 320} {
		b.size(width, 844)
		for name, path := range pages() {
			b.open(path)
			unfold(b)
			wide := eval[string](b, `((w) => { // a phone makes the window itself as wide as what is in it
				const need = Math.max(innerWidth, document.documentElement.scrollWidth);
				const out = [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > w + 1 && !e.closest(".scroll, pre, .nav"));
				return need > w ? need + ": " + out.slice(0, 5).map((e) => e.tagName + "." + e.className).join(" ") : "";
			})(`+itoa(int(width))+`)`)
			kit.Check(t, wide == "", "%s is wider than %d: %s", name, width, wide)
		}
	}
}

var inUTC = regexp.MustCompile(`.{0,10}\d\d:\d\d(:\d\d)? UTC`)

// TestLocalTimes: every moment on a page is in the browser's zone, also in the choices of a form.
func TestLocalTimes(t *testing.T) {
	b, _ := reader(t)
	call(b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kathmandu"})
	for _, name := range []string{"list", "conversation", "compare", "versions", "drops", "entry", "context", "share", "links", "account"} {
		b.open(pages()[name])
		unfold(b)
		at := inUTC.FindString(eval[string](b, `document.body.innerText`))
		kit.Check(t, at == "", "%s shows %s", name, at)
		wrong := eval[string](b, `[...document.querySelectorAll("[data-stamp]")].filter((e) => {
			const at = new Date(e.dateTime || e.dataset.stamp);
			return !e.textContent.endsWith(new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", timeZone: "Asia/Kathmandu" }).format(at));
		}).map((e) => e.outerHTML).join()`)
		kit.Check(t, wrong == "", "%s shows the times of another zone: %s", name, wrong)
	}
	b.open(pages()["compare"])
	n := b.count(`select[name=a] option[data-stamp]`)
	kit.Check(t, n >= 2, "%d generations can be chosen", n)
}

// TestTheme: the chosen theme stays, with no moment of the other one; without a choice the system's is taken.
func TestTheme(t *testing.T) {
	b, _ := reader(t)
	ground := func() string { return eval[string](b, `getComputedStyle(document.body).backgroundColor`) }
	light := ground()
	b.colorScheme("dark")
	dark := ground()
	kit.Require(t, light != dark, "both looks have the ground %s", light)
	b.colorScheme("light")
	b.clickWait(`.theme button:not([hidden])[value="dark"]`, "the theme is dark", `getComputedStyle(document.body).backgroundColor === `+quoted(dark))
	for _, path := range []string{"/", "/usage", "/sessions/" + taleID} {
		b.open(path)
		got := ground()
		kit.Check(t, got == dark, "%s has the ground %s", path, got)
		got = eval[string](b, `fetch(location.href).then((r) => r.text()).then((s) => s.match(/<html[^>]*>/)[0])`)
		kit.Check(t, strings.Contains(got, `data-theme="dark"`), "%s is sent as %s: it would flash", path, got)
	}
	b.clickWait(`.theme button[value="light"]`, "the theme is light", `document.documentElement.dataset.theme === "light"`)
	b.colorScheme("dark")
	b.open("/")
	kit.Equal(t, "light was chosen, the ground", ground(), light)
}

// TestWithoutScript: reading, searching and choosing a theme need no script.
func TestWithoutScript(t *testing.T) {
	s := needGallery(t)
	b := newTab(t, s.url)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.mute = true
	b.login(s.key)
	b.clickWait(`[data-session="`+taleID+`"] a.title`, "the conversation is open", `document.querySelector("#items")`)
	b.loaded()
	b.reads("main", talePrompt)
	b.reads(openTool(b, "Run the tests of the board"), "06:10 Ronas is missing")
	b.clickWait(".toc a", "the prompts are a page", `document.querySelector("ol.prompts.page")`)
	b.reads("ol.prompts.page", "Now the quiet hours")
	b.fill("#find", taleWord)
	b.wait("something is found", `document.querySelector(".hit mark")`)
	b.clickWait(`.theme button[value="dark"]`, "the theme is dark", `document.documentElement.dataset.theme === "dark" && document.querySelector(".hit")`)
}
