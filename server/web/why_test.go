package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/provenance"
)

// TestWhyPage shows what is known of a commit that the address has, and refuses any other address.
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
	for _, bad := range []string{"", "x", "AAAA", many} {
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
	kit.Must(t, s.store.KeepCommits(t.Context(), []server.CommitShare{{Owner: at.Owner, Stream: at.Stream, Commit: name,
		At: today.Add(-time.Hour), Added: 71, Lines: 64}}))
	mustHave(t, s.get(t, sessionPath(tourID, "")), `id="commits"`, `<code title="`+name+`">c0ffee12c0f…</code>`, "64 of 71 lines")
	mustLack(t, s.get(t, sessionPath("other", "")), `id="commits"`)
	const commit = `{"type":"user","uuid":"%s","timestamp":"2026-11-23T09:0%d:00Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"%s","content":"ok"}]},"toolUseResult":{"gitOperation":{"commit":{"sha":"%s","kind":"committed"}}}}`
	s.put(t, head("made"), fmt.Sprintf(commit, "a", 1, "a", "c0ffee12"), fmt.Sprintf(commit, "b", 2, "b", "<beef>"))
	made := kit.Try(s.store.Resolve(t.Context(), server.Scope{All: true}, server.Ref{SessionID: "made"})).Must(t)
	mustHave(t, s.get(t, sessionPath("made", "")), `<h2>Commits <small>2</small></h2>`, `<code title="c0ffee12">c0ffee12</code></a><small><time`, "&lt;beef&gt;", `href="/sessions/made/L/0"`)
	kit.Must(t, s.store.KeepCommits(t.Context(), []server.CommitShare{{Owner: made.Owner, Stream: made.Stream, Commit: name, At: today, Added: 71, Lines: 7}}))
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
