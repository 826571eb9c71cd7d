//go:build unix

package viewer_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"

	"github.com/ccship/ccship/e2e/kit"
)

// reader opens the gallery in a tab, logged in as its owner.
func reader(t testing.TB) (*tab, *site) {
	t.Helper()
	s := needGallery(t)
	b := newTab(t, s.url)
	b.login(s.key)
	return b, s
}

// TestReading goes a reader's way: list, conversation, tool, agent, search, the very line, and where it comes from.
func TestReading(t *testing.T) {
	b, _ := reader(t)
	b.reads("main", "harbour", "kims-laptop", "almanac", "workbench", taleTitle, "fix/clock-change", "1 agent", "1 compaction", errands[0].title)
	row := `[data-session="` + taleID + `"]`
	b.clickWait(row+" a.title", "the conversation is open", `document.querySelector("h1")?.innerText === `+quoted(taleTitle))
	b.loaded() // the title comes before the items
	readTale(b)
	readTools(b)
	readAgent(b)
	b.fill("#find", `"the *`+taleWord+`* rule"`)
	b.wait("something is found", `document.querySelector(".hit")`)
	b.reads(".found", taleTitle, "harbour", "kims-laptop")
	got := b.text(".hit mark")
	kit.Check(t, strings.Contains(strings.ToLower(got), "the"), "what was looked for is not marked: %q", got)
	line := eval[string](b, `"#L" + `+one(".hit a.at-line")+`.pathname.split("/").at(-1)`) // the address follows the reader
	b.clickWait(".hit a.at-line", "the line is in sight", `((r) => r && r.top >= 0 && r.top < innerHeight)(`+one(line)+`?.getBoundingClientRect())`)
	readProvenance(b, line)
}

func readTale(b *tab) {
	b.t.Helper()
	b.click(".resume > summary")
	b.reads(".resume", "claude --resume "+taleID)
	b.click(".resume > summary")
	b.reads("main", talePrompt, "Conversation auto-compacted at 17", "Rewound to line", "Interrupted by the user", "/review", "queued", "Pull request #214")
	b.wait("the prompts are listed", `document.querySelectorAll(".toc li").length >= 5`)
	b.wait("the picture is shown", `(() => { const i = document.querySelector("figure img"); i?.scrollIntoView(); return i?.complete && i.naturalWidth === 640; })()`)
	for what, selector := range map[string]string{"a table": ".md table td", "an old branch": ".item.left, .left"} {
		kit.Check(b.t, b.count(selector) != 0, "%s is missing (%s)", what, selector)
	}
	eventually(b.t, "Go is coloured", time.Minute, func() bool { // unless it takes long: then the page is shown without
		if b.count(".md pre code span[class]") > 0 {
			return true
		}
		b.open("/sessions/" + taleID)
		return false
	})
	got := b.text("details.tool.ok[open]:not(:has(.diff, .todo, pre.code)) summary")
	kit.Check(b.t, got == "", "a tool call that went well is open from the beginning: %s", brief(got))
}

// openTool unfolds the tool call whose summary has a text, as a reader does, and answers a selector for it.
func openTool(b *tab, summary string) string {
	b.t.Helper()
	found := eval[bool](b, `(() => {
		document.querySelectorAll("[data-found]").forEach((e) => delete e.dataset.found);
		document.querySelectorAll("details.calls").forEach((e) => { e.open = true; });
		const d = [...document.querySelectorAll("details.tool")].find((d) => d.querySelector("summary").innerText.includes(`+quoted(summary)+`));
		if (d) d.dataset.found = "";
		return !!d;
	})()`)
	if !found {
		b.t.Fatalf("no tool call says %q\n%s", summary, b.excerpt())
	}
	if !eval[bool](b, one("[data-found]")+".open") {
		b.clickWait("[data-found] > summary", "the tool call is open", one("[data-found]")+".open")
	}
	return "[data-found]"
}

func readTools(b *tab) {
	b.t.Helper()
	b.reads(openTool(b, "board.go")+" .body", "time.Hour")
	failed := openTool(b, "Run the tests of the board")
	b.reads(failed, "06:10 Ronas is missing", taleCommand, "failed")
	got := eval[string](b, one(failed+" pre.out span[class]")+"?.className || ''")
	kit.Check(b.t, got != "", "the colours of the terminal are lost")
	kit.Check(b.t, !strings.Contains(b.text(failed), "\x1b") && !strings.Contains(b.text(failed), "[31m"),
		"escape sequences are shown")
	b.clickWait(failed+" > summary", "the tool call is closed", "!"+one(failed)+".open")
	edit := openTool(b, "quiet.go")
	b.reads(edit, "civil.On(civil.Midnight(now, q.Zone), q.End)", "notify/quiet.go")
	for _, class := range []string{"add", "del"} {
		kit.Check(b.t, b.count(edit+" tr."+class) != 0, "the edit shows no line %s", class)
	}
	b.reads(openTool(b, "tracker"), "watchers", "8812")
}

func readAgent(b *tab) {
	b.t.Helper()
	task := openTool(b, "Find other day arithmetic")
	b.reads(task, "quiet hours end an hour early", "2 tool calls")
	b.clickWait(task+" .agent details > summary", "the agent is shown in its place", one(task+" .agent .inside")+`?.innerText.includes("notify/quiet.go")`)
	b.clickWait(task+" .agent > a", "the agent has a page", `location.pathname.endsWith("agent-`+taleAgent+`")`)
	b.loaded()
	b.reads("main", "Session of this agent", "Look through the module harbour")
}

// readProvenance follows the line that is looked at to its origin.
func readProvenance(b *tab, line string) {
	b.t.Helper()
	b.clickWait(line+" a.raw", "the record is shown", `document.querySelector(".provenance")`)
	main, _ := tale(time.Now())
	index := -1
	for i, l := range main.lines {
		if strings.Contains(l, "the *"+taleWord+"* rule") {
			index = i
		}
	}
	b.reads("h1", "Line "+itoa(index+1))
	b.reads(".provenance", "kims-laptop", "4f0c9a11d2e7", "-home-kim-src-harbour/"+taleID+".jsonl", "line_index "+itoa(index), "at offset", "Received")
	b.reads("pre.code.tall", `"requestId"`, `"parentUuid"`)
	bytes := eval[string](b, `fetch(document.querySelector("a[download][href*='/bytes/']").href).then((r) => r.text())`)
	sum := sha256.Sum256([]byte(bytes))
	b.reads(".provenance", hex.EncodeToString(sum[:]))
	kit.Check(b.t, strings.HasPrefix(bytes, "{") && !strings.Contains(bytes, "line_index") && strings.Contains(bytes, taleWord),
		"the exact bytes are %.200q", bytes)
	b.clickWait(".where a", "back in the conversation", `document.querySelector("#items") && location.hash`)
}

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

// errand is a session of the weeks before: what was asked, and where.
type errand struct {
	title, prompt string
	project       string
	desk          bool // on the workbench, else on the laptop
	days          int  // ago
	model         string
	turns         int
}

// errands are the sessions of some months, the oldest first.
var errands = []errand{
	{"Parse the harbour authority's tide tables", "Read the tide tables in data/2026 and make records of them", "almanac", true, 171, "claude-opus-5", 9},
	{"Sunrise and sunset without a service", "We ask a service for sunrise. Compute it instead, good to a minute", "almanac", true, 158, "claude-opus-5", 12},
	{"Board: rows jump when a sailing is cancelled", "When a sailing is cancelled the rows below jump. Make them slide", "tideboard", false, 149, "claude-sonnet-5", 6},
	{"Feed parser rejects times past midnight", "25:10 in the feed means ten past one the next day. The parser throws it away", "harbour", false, 137, "claude-opus-5", 8},
	{"Move the build to a lock file", "Pin every dependency and say in the readme how to renew them", "tideboard", false, 126, "claude-haiku-4-5", 4},
	{"Retry the feed politely", "When the feed is down we ask every second. Back off", "harbour", false, 26, "claude-sonnet-5-5", 5},
	{"Rewrite the station index", "The index of stations is built by hand. Generate it", "almanac", true, 22, "claude-opus-5-5", 12},
	{"Cancelled sailings in the calendar feed", "People subscribe to the calendar and don't see cancellations", "harbour", false, 18, "claude-opus-5-5", 8},
	{"Keyboard focus is lost after a refresh", "After each refresh the focus is gone. Keep it where it was", "tideboard", false, 15, "claude-sonnet-5-5", 6},
	{"Storm surge: show how sure we are", "Draw the band in which nine of ten measurements lie", "almanac", true, 12, "claude-opus-5-5", 11},
	{"Split timetable from harbour", "timetable knows too much of harbour. Draw a line between them", "harbour", false, 9, "claude-opus-5-5", 15},
	{"Fewer requests from the board", "The board asks for everything each minute. Ask for what has changed", "tideboard", false, 7, "claude-sonnet-5-5", 7},
	{"Test with a real year of data", "Run the whole of 2025 through the predictor in a test, quickly", "almanac", true, 5, "claude-opus-5-5", 9},
	{"Operators' notes on a sailing", "Operators want to write a line that stands below a sailing", "harbour", true, 3, "claude-opus-5-5", 10},
	{"Fit the board to the phone", "On a phone the times wrap. Make it fit 360 pixels", "tideboard", false, 2, "claude-sonnet-5-5", 8},
	{"Low water at the slipway", "From the tide and the chart: between which times can a boat not be launched?", "almanac", true, 1, "claude-opus-5-5", 9},
}

// play writes the session; the same each time but for its dates.
func (e errand) play(now time.Time, n int) *script {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	day := now.Truncate(24*time.Hour).AddDate(0, 0, -e.days)
	s := &script{id: fmt.Sprintf("%08x-5c3e-4d2a-8f61-%012x", 0x2b70a1c4+n*0x01030507, n), cwd: "/home/kim/src/" + e.project, branch: "main", model: e.model,
		at: day.Add(time.Duration(7*60+r.IntN(600)) * time.Minute), context: 24_000 + r.Int64N(19_000), fresh: 15_000}
	s.prompt(e.prompt)
	s.titled(e.title)
	for i := range e.turns {
		for range 3 + r.IntN(6) {
			s.tool("Bash", object{"command": "git log --oneline -5", "description": "What was done last"}, "9c1f2ab Tidy", object{"stdout": "9c1f2ab Tidy", "stderr": ""}, 2*time.Second)
			s.fresh += 600 + r.Int64N(1800)
		}
		s.say("Done: step " + fmt.Sprint(i+1) + ".")
		if i+1 < e.turns {
			s.wait(time.Duration(r.IntN(25)) * time.Minute)
			if i%5 == 4 { // goes on another day
				s.wait(22 * time.Hour)
			}
			if s.at.After(now) {
				s.at = now
			}
			s.prompt("Go on.")
		}
	}
	return s
}

// where is the stream of a session on the laptop or the workbench.
func where(id, project string, desk bool) stream {
	x := stream{id: id, machine: "4f0c9a11d2e7", host: "kims-laptop", project: project, cwd: "/home/kim/src/" + project}
	if desk {
		x.machine, x.host = "b81e77c05a3f", "workbench"
	}
	return x
}

// t0 is a moment for what nobody looks at the time of.
var t0 = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
