//go:build unix

package viewer_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

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
