package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/provenance"
)

// TestWhyPage shows what is known of a commit that the address has, asks for a file where the address has nothing, and refuses any other address.
func TestWhyPage(t *testing.T) {
	s := loggedIn(t)
	f := provenance.File{Paths: []string{"shop/cart.go"}}
	sum, plain, _ := provenance.SumOf("func total(c Cart) int {")
	f.Lines = append(f.Lines, provenance.Added{Number: 1, Sum: sum, Plain: plain})
	text, ok, err := provenance.Link([]provenance.Commit{{Name: "0123456789abcdef", At: time.Now(), Files: []provenance.File{f}}})
	kit.Require(t, err == nil && ok, "%v %v", ok, err)
	mustHave(t, s.get(t, "/why?q="+text), "Commit 0123456789a…", "0 of 1 line proven", "no transcript of that time",
		"No session is proven to have written it.")
	many, _, err := provenance.Link(make([]provenance.Commit, 501))
	kit.Must(t, err)
	mustHave(t, s.get(t, "/why"), `name="file"`, "<code>ccship why HEAD --link</code>")
	for _, bad := range []string{"x", "AAAA", many} {
		s.wants(t, 400, "GET", "/why?q="+bad, nil)
	}
}

// TestSessionCommits: a session's page shows the commits that it made, and how much it wrote of those that were asked about,
// to who may read it; not to who has a link, nor in any other session.
func TestSessionCommits(t *testing.T) {
	s := loggedIn(t)
	s.tour(t)
	s.put(t, head("other"), `{"type":"user","uuid":"u","message":{"role":"user","content":"another one"}}`)
	mustLack(t, s.get(t, sessionPath(tourID, "")), `id="commits"`)
	at := kit.Try(s.store.Resolve(t.Context(), server.Scope{All: true}, server.Ref{SessionID: tourID})).Must(t)
	name := strings.Repeat("c0ffee12", 5)
	kit.Must(t, s.store.KeepCommits(t.Context(), []server.CommitShare{{Owner: at.Owner, Stream: at.Stream, CommitShare: protocol.CommitShare{Commit: name,
		At: today.Add(-time.Hour), Added: 71, Lines: 64}}}))
	mustHave(t, s.get(t, sessionPath(tourID, "")), `id="commits"`, `<code title="`+name+`">c0ffee12c0f…</code>`, "64 of 71 lines")
	mustLack(t, s.get(t, sessionPath("other", "")), `id="commits"`)
	const commit = `{"type":"user","uuid":"%s","timestamp":"2026-11-23T09:0%d:00Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"%s","content":"ok"}]},"toolUseResult":{"gitOperation":{"commit":{"sha":"%s","kind":"committed"}}}}`
	s.put(t, head("made"), fmt.Sprintf(commit, "a", 1, "a", "c0ffee12"), fmt.Sprintf(commit, "b", 2, "b", "<beef>"))
	made := kit.Try(s.store.Resolve(t.Context(), server.Scope{All: true}, server.Ref{SessionID: "made"})).Must(t)
	mustHave(t, s.get(t, sessionPath("made", "")), `<h2>Commits <small>2</small></h2>`, `<code title="c0ffee12">c0ffee12</code></a><small><time`, "&lt;beef&gt;", `href="/sessions/made/L/0"`)
	kit.Must(t, s.store.KeepCommits(t.Context(), []server.CommitShare{{Owner: made.Owner, Stream: made.Stream, CommitShare: protocol.CommitShare{Commit: name, At: today, Added: 71, Lines: 7}}}))
	mustHave(t, s.get(t, sessionPath("made", "")), `<h2>Commits <small>2</small></h2>`, `<code title="`+name+`">c0ffee12c0f…</code></a><small>7 of 71 lines`)
	link := s.get(t, s.share(t, tourID))
	mustHave(t, link, "Outline")
	mustLack(t, link, "c0ffee12", "64 of 71")
	s.login(t, s.addKey(t, s.addUser(t, "ana", server.Member), "tower"))
	s.wants(t, 404, "GET", sessionPath(tourID, ""), nil)
}

// TestFileTurns: a conversation leads to all turns that wrote a file, on whatever machine its repository lies; nobody sees
// another one's.
func TestFileTurns(t *testing.T) {
	s := newSite(t, nil)
	edit := func(id, minute, path, text string) []string {
		at := "2026-11-20T08:" + minute
		return []string{
			`{"type":"assistant","uuid":"` + id + `","cwd":"` + path[:strings.Index(path, "/src")] + `","timestamp":"` + at + `:10Z","message":{"id":"` + id + `","role":"assistant","content":[{"type":"tool_use","id":"` + id +
				`","name":"Edit","input":{"file_path":"` + path + `","old_string":"a","new_string":"` + text + `"}}]}}`,
			`{"type":"user","uuid":"r` + id + `","timestamp":"` + at + `:20Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + id +
				`","content":"done"}]},"toolUseResult":{"filePath":"` + path + `","oldString":"a","newString":"` + text + `"}}`,
		}
	}
	ask := func(minute, text string) string {
		return `{"type":"user","uuid":"p` + minute + `","timestamp":"2026-11-20T08:` + minute + `:00Z","message":{"role":"user","content":"` + text + `"}}`
	}
	h := head("one")
	h.Cwd, h.ProjectHash = "/home/kim/shop", "sha-of-shop"
	lines := append([]string{ask("01", "Round the totals")}, edit("e1", "01", "/home/kim/shop/src/cart.go", "func round() int {")...)
	lines = append(append(lines, edit("e2", "02", "/home/kim/shop/src/cart.go", "return cents / 100")...), edit("e3", "03", "/home/kim/shop/src/till.go", "func open() error {")...)
	lines = append(append(lines, ask("04", "Now the taxes")), edit("e4", "04", "/home/kim/shop/src/cart.go", "func taxes() int {")...)
	s.put(t, h, lines...)
	other := head("two")
	other.Cwd, other.ProjectHash, other.Machine = "/srv/shop", "sha-of-shop", "m2"
	s.put(t, other, append([]string{ask("05", "Log the cart")}, edit("e5", "05", "/srv/shop/src/cart.go", "log.Print(cart)")...)...)
	stranger := head("three")
	stranger.Cwd, stranger.ProjectHash = "/home/kim/other", "sha-of-other"
	s.put(t, stranger, append([]string{ask("06", "Another cart")}, edit("e6", "06", "/home/kim/other/src/cart.go", "func another() int {")...)...)
	agent := head("one/agent-1")
	agent.Parent, agent.Cwd, agent.ProjectHash = "one", "/home/kim/shop", "sha-of-shop"
	var records []string
	for _, l := range edit("e7", "04", "/home/kim/shop/src/cart.go", "func rebate() int {") {
		records = append(records, strings.Replace(l, "{", `{"sessionId":"one","isSidechain":true,`, 1))
	}
	s.put(t, agent, records...)
	s.login(t, s.key)
	const page = "/why?file=src%2Fcart.go&project=sha-of-shop"
	mustHave(t, s.get(t, sessionPath("one", "")), `href="/why?file=src%2Fcart.go&amp;project=sha-of-shop"`)
	got := s.get(t, page)
	mustHave(t, got, "Round the totals", "Now the taxes", "Log the cart", "1 edit", `href="/sessions/one/L/7`)
	mustLack(t, got, "Another cart")
	kit.Equal(t, "turns have two edits, one of them with its agent's: "+got, strings.Count(got, "2 edits"), 2)
	a, b, c := strings.Index(got, "Log the cart"), strings.Index(got, "Now the taxes"), strings.Index(got, "Round the totals")
	kit.Check(t, a <= b && b <= c, "turns are not the newest first: %d %d %d", a, b, c)
	mustHave(t, s.get(t, "/why?file=art.go&project=sha-of-shop"), "No session that you may read wrote to it.")
	s.login(t, s.addKey(t, s.addUser(t, "ana", server.Member), "tower"))
	mustLack(t, s.get(t, page), "Round the totals", "Log the cart", "kim")
}

// TestWhyPageIsBounded: of a commit that answers more prompts than a page shows, the rest is counted.
func TestWhyPageIsBounded(t *testing.T) {
	m := newMeter(t)
	var records []string
	record := func(rest string) {
		n := len(records)
		records = append(records, fmt.Sprintf(`{"uuid":"u-%d","sessionId":"many","cwd":"/home/kim/shop","timestamp":%q,%s}`, n,
			today.Add(time.Duration(n)*time.Second).Format(time.RFC3339), rest))
	}
	f := provenance.File{Paths: []string{"shop/cart.go"}}
	for i := range 600 {
		line := fmt.Sprintf("func total%d(c Cart) int {", i)
		sum, plain, _ := provenance.SumOf(line)
		f.Lines = append(f.Lines, provenance.Added{Number: i + 1, Sum: sum, Plain: plain})
		record(`"type":"user","message":{"role":"user","content":"` + strings.Repeat("write it ", 200) + `"}`)
		record(fmt.Sprintf(`"type":"assistant","message":{"id":"m-%d","role":"assistant","content":[{"type":"tool_use","id":"t-%d","name":"Write",`+
			`"input":{"file_path":"/home/kim/shop/cart.go","content":%q}}]}`, i, i, line+"\n"))
		record(fmt.Sprintf(`"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t-%d","content":"ok"}]}`, i))
	}
	m.put(t, head("many"), records...)
	text, _, err := provenance.Link([]provenance.Commit{{Name: "c0ffee", At: today.Add(time.Hour), Files: []provenance.File{f}}})
	kit.Must(t, err)
	m.page(t, "/why?q="+text, 1)
	page := m.get(t, "/why?q="+text)
	mustHave(t, page, "600 of 600 lines proven", "100 further prompts")
	kit.Equal(t, "prompts are shown", strings.Count(page, "data-row"), 500)
}

// said is a line of a conversation: a prompt or an answer, below the line with the number parent; -1: below none.
func said(n, parent int, kind, text string) string {
	above := "null"
	if parent >= 0 {
		above = fmt.Sprintf(`"u%d"`, parent)
	}
	content := fmt.Sprintf("%q", text)
	if kind == "assistant" {
		content = fmt.Sprintf(`[{"type":"text","text":%q}]`, text)
	}
	return fmt.Sprintf(`{"type":%q,"uuid":"u%d","parentUuid":%s,"version":"2.1.42","timestamp":"2026-08-20T09:%02d:%02d.000Z",`+
		`"message":{"role":%q,"id":"m%d","model":"m","content":%s}}`, kind, n, above, n/60%60, n%60, kind, n, content)
}

// talk is a conversation of lines from number from to before to, each below the one before it.
func talk(from, to, parent int) (lines []string) {
	for n := from; n < to; n++ {
		kind := "user"
		if n%2 == 1 {
			kind = "assistant"
		}
		lines = append(lines, said(n, parent, kind, fmt.Sprintf("text %d", n)))
		parent = n
	}
	return lines
}

// TestRewindBeyondThePage: a rewind is one over the whole session. Its page shows it whatever lies on other pages, these
// show what it removed, and no page takes a parent that it does not hold for a rewind.
func TestRewindBeyondThePage(t *testing.T) {
	const removed = "removed by a rewind"
	s := loggedIn(t)
	lines := append(talk(0, 700, -1), talk(700, 1000, 99)...)
	h := head("far")
	s.put(t, h, lines...)
	check := func(what string, pages map[string]string) {
		t.Helper()
		for from, want := range pages {
			got := items(t, s.get(t, sessionPath("far", "", "from", from)))
			rewinds, left := 0, 0
			for id, text := range got {
				if strings.HasSuffix(id, "-rewind") {
					rewinds++
				}
				if strings.Contains(text, removed) {
					left++
				}
			}
			kit.Equal(t, fmt.Sprintf("%s, from %s", what, from),
				fmt.Sprintf("%d rewinds, %d of %d left", rewinds, left, len(got)-rewinds), want)
		}
	}
	pages := map[string]string{"0": "0 rewinds, 200 of 300 left", "300": "0 rewinds, 300 of 300 left",
		"600": "1 rewinds, 100 of 300 left", "900": "0 rewinds, 0 of 100 left"}
	check("derived", pages)
	kit.Must(t, s.store.ResetDerived(t.Context()))
	check("not derived", pages)
	export := s.get(t, sessionPath("far", "/export", "format", "html"))
	kit.Equal(t, "items of which the export says that they were removed", strings.Count(export, removed), 600)
	h.Generation, h.RewoundTo = 1, 700
	s.put(t, h, talk(700, 760, 699)...)
	check("the next generation", map[string]string{"0": "0 rewinds, 0 of 300 left", "600": "0 rewinds, 0 of 161 left"})
	old := items(t, s.get(t, sessionPath("far", "", "generation", "0", "from", "600")))
	kit.Check(t, strings.Contains(old["L699"], removed) && old["L700-rewind"] != "", "the generation before: %q, %q",
		old["L699"], old["L700-rewind"])
}

// TestRewindAcrossACompaction: what stays is not shown as removed, and what was said before the compaction and after the
// message gone back to is.
func TestRewindAcrossACompaction(t *testing.T) {
	s := loggedIn(t)
	boundary := `{"type":"system","subtype":"compact_boundary","uuid":"u4","parentUuid":null,"logicalParentUuid":"u3",` +
		`"timestamp":"2026-08-20T09:00:04.000Z","compactMetadata":{"trigger":"manual","preTokens":60}}`
	lines := append(talk(0, 4, -1), boundary, said(5, 4, "user", "on"), said(6, 5, "assistant", "text 6"))
	s.put(t, head("across"), append(lines, said(7, 1, "user", "back"))...)
	got := items(t, s.get(t, sessionPath("across", "")))
	for n := range 8 {
		id := fmt.Sprintf("L%d", n)
		removed := strings.Contains(got[id], "removed by a rewind")
		kit.Check(t, removed == (n >= 2 && n < 7 && n != 4), "%s is removed: %v: %q", id, removed, got[id])
	}
	kit.Has(t, "the rewind is", got["L7-rewind"], "Rewound to line 2")
}

// TestQueuedPromptsAreShown: a prompt that only the queue has is a prompt, where it was used; one with a record of its own
// is shown once.
func TestQueuedPromptsAreShown(t *testing.T) {
	s := loggedIn(t)
	queue := func(operation, text string, second int) string {
		return fmt.Sprintf(`{"type":"queue-operation","operation":%q,"timestamp":"2026-08-20T10:00:%02d.000Z","content":%q}`, operation, second, text)
	}
	s.put(t, head("queue"), append(talk(0, 2, -1),
		queue("enqueue", "only queued", 1), queue("remove", "", 2), said(4, 1, "assistant", "noted"),
		queue("enqueue", "recorded too", 3), queue("remove", "", 4), said(7, 4, "user", "recorded too"),
		`{"type":"system","subtype":"turn_duration","uuid":"u8","parentUuid":"u7","durationMs":5}`,
		`{"type":"user","uuid":"u9","parentUuid":null,"planContent":"# Plan","timestamp":"2026-08-20T11:00:00.000Z","message":{"role":"user","content":"do it"}}`,
	)...)
	got := items(t, s.get(t, sessionPath("queue", "")))
	itemsHave(t, got, map[string]string{"L3": "only queued", "L6": "recorded too", "L9-cleared": "Context cleared", "L9": "do it"})
	text, there := got["L7"]
	kit.Check(t, !there, "the copy is shown: %q", text)
	for _, page := range []string{s.get(t, sessionPath("queue", "", "mode", "prompts")), s.get(t, sessionPath("queue", "/export", "format", "md"))} {
		kit.Check(t, strings.Count(page, "only queued") == 1 && strings.Count(page, "recorded too") == 1,
			"prompts are not there once:\n%s", page)
	}
}

// TestStillReading: as long as lines are not derived, pages say so instead of numbers of a part.
func TestStillReading(t *testing.T) {
	s := loggedIn(t)
	s.put(t, head("read"), talk(0, 4, -1)...)
	pages := []string{sessionPath("read", ""), "/"}
	for _, path := range pages {
		mustLack(t, s.get(t, path), "still reading")
	}
	kit.Must(t, s.store.ResetDerived(t.Context()))
	for _, path := range pages {
		mustHave(t, s.get(t, path), "still reading")
	}
}
