package web_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/ccship/ccship/server"
)

// sections are the groups of a list, as the words of each.
func sections(t *testing.T, page string) (out []string) {
	t.Helper()
	nodes(t, page, func(n *html.Node) {
		if n.Data == "section" && attr(n, "class") == "group" {
			out = append(out, strings.Join(strings.Fields(words(n)), " "))
		}
	})
	return out
}

// ago is the time of a record.
func ago(d time.Duration) string { return today.Add(-d).UTC().Format(time.RFC3339) }

// TestListOrder: sessions stand by day; by project when the reader wants it, and then again. A worktree below its
// repository stands with it, whatever its project_hash is; one elsewhere has that of its repository.
func TestListOrder(t *testing.T) {
	s := loggedIn(t)
	for _, x := range []struct{ id, hash, cwd string }{
		{"main", "h-shop", "/home/kim/shop"}, {"tree", "h-tree", "/home/kim/shop/.claude/worktrees/fix-it"}, {"seventh", "h-seven", "/home/kim/shop/.worktrees/7"},
		{"sibling", "h-shop", "/home/kim/shop-fix"}, {"other", "h-garden", "/home/kim/garden"},
	} {
		h := head(x.id)
		h.ProjectHash, h.Cwd, h.Project = x.hash, x.cwd, strings.TrimPrefix(x.hash, "h-")
		s.put(t, h, prompt(x.id, "claude-opus-4-8", ago(time.Hour))...)
	}
	if got := sections(t, s.get(t, "/")); len(got) > 2 || !strings.Contains(got[0], "worktree fix-it") || !strings.Contains(got[0], "worktree 7") {
		t.Errorf("by day %q", got)
	}
	byProject := func(when, page string) {
		t.Helper()
		got := sections(t, page)
		if len(got) != 2 || !strings.HasPrefix(got[1], "shop/home/kim/shop ") ||
			!strings.Contains(got[1], "main") || !strings.Contains(got[1], "tree") || !strings.Contains(got[1], "seventh") {
			t.Errorf("%s: %q", when, got)
		}
	}
	byProject("by project", s.get(t, "/?by=project"))
	byProject("the next time", s.get(t, "/"))
	s.get(t, "/?by=day")
	if got := sections(t, s.get(t, "/")); len(got) > 2 || strings.HasPrefix(got[0], "other/") {
		t.Errorf("by day again %q", got)
	}
}

// TestSafety: the first page counts what would be lost, and leads to it.
func TestSafety(t *testing.T) {
	s := loggedIn(t)
	day := 24 * time.Hour
	for id, age := range map[string]time.Duration{"new": 2 * day, "nearly": 22 * day, "soon": 24 * day, "late": 29 * day, "past": 31 * day, "older": 300 * day} {
		h := head(id)
		lines := prompt(id, "claude-opus-4-8", ago(age))
		if id == "new" {
			lines = append(lines, `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"no"}]}}`)
		}
		s.put(t, h, lines...)
	}
	counts := map[string]string{}
	page := s.get(t, "/")
	nodes(t, page, func(n *html.Node) {
		if n.Data == "dl" && attr(n, "class") == "safety" {
			for d := range n.ChildNodes() {
				if dt, dd := d.FirstChild, d.LastChild; dt != nil {
					counts[words(dt)[:4]] = words(dd)
				}
			}
		}
	})
	if got := fmt.Sprint(counts); got != "map[Clau:2 Olde:2 Rewr:0 Save:6]" {
		t.Errorf("counts %s", got)
	}
	for view, want := range map[string]string{"expiring": "late soon", "expired": "older past", "": "late nearly new older past soon", "failed": "new"} {
		got := s.get(t, "/?view="+view)
		for _, id := range []string{"new", "nearly", "soon", "late", "past", "older"} {
			if shown := strings.Contains(got, "<bdi>"+id+"</bdi></a>"); shown != strings.Contains(want, id) {
				t.Errorf("view %q shows %s: %v", view, id, shown)
			}
		}
	}
}

// TestWall: what runs stands above the list with what it does, what needs a person first. An agent is not a session.
func TestWall(t *testing.T) {
	s := loggedIn(t)
	call := func(name, at string) string {
		return fmt.Sprintf(`{"type":"assistant","uuid":"c","timestamp":%q,"message":{"id":"m","role":"assistant","model":"m","stop_reason":"tool_use","content":[{"type":"tool_use","id":"t1","name":%q,"input":{"command":"make all"}}]}}`, at, name)
	}
	for _, x := range []struct {
		id, tool string
		age      time.Duration
	}{{"runs", "Bash", 2 * time.Second}, {"stuck", "Bash", time.Hour}, {"asks", "AskUserQuestion", 2 * time.Hour}, {"gone", "Bash", 13 * time.Hour}} {
		s.put(t, head(x.id), prompt(x.id, "m", ago(x.age+time.Second))[0], call(x.tool, ago(x.age)))
	}
	h := head("runs/agent-a1")
	h.Parent = "runs"
	s.put(t, h, prompt("the task", "m", ago(time.Second))[0])
	for _, path := range []string{"/", "/now", "/now?bare=1"} {
		var cards []string
		nodes(t, s.get(t, path), func(n *html.Node) {
			if strings.HasPrefix(attr(n, "class"), "run ") {
				cards = append(cards, strings.Join(strings.Fields(words(n)), " "))
			}
		})
		if len(cards) != 3 || !strings.Contains(cards[0], "waiting for permission stuck") || !strings.Contains(cards[1], "Claude asks a question asks") ||
			!strings.HasPrefix(cards[2], "Working runs") || !strings.Contains(cards[0], "make all") {
			t.Errorf("%s: %q", path, cards)
		}
	}
	if page := s.get(t, "/?q=runs"); strings.Contains(page, `id="now"`) {
		t.Error("a filtered list has the wall")
	}
	// Nobody sees what another user runs.
	lee := s.addUser(t, "lee", server.Member)
	if a := s.login(t, s.addKey(t, lee, "desk")); a.code != 200 {
		t.Fatal(a.code)
	}
	if page := s.get(t, "/now"); strings.Contains(page, "stuck") {
		t.Error("another user's session is on the wall")
	}
}

// TestChips: what a search is narrowed to stands above it, and each goes away by itself. Kinds add up.
func TestChips(t *testing.T) {
	s := loggedIn(t)
	s.tour(t)
	links := func(page, within string) map[string]string {
		out := map[string]string{}
		nodes(t, page, func(n *html.Node) {
			if n.Data == "ul" && attr(n, "class") == within {
				for a := range n.Descendants() {
					if a.Data == "a" {
						out[strings.Join(strings.Fields(words(a)), " ")] = attr(a, "href") + " " + attr(a, "aria-current")
					}
				}
			}
		})
		return out
	}
	const all = "/search?file=cart.go&kind=prompt&machine=9c1f2ab047d3&project=sha-of-shop&q=cart&since=2026-01-02&superseded=1&tool=Edit"
	page := s.get(t, all)
	chips := links(page, "chosen on")
	for name, gone := range map[string]string{"project shop ×remove": "project=sha-of-shop&", "machine kims-laptop ×remove": "machine=9c1f2ab047d3&",
		"from 2026-01-02 ×remove": "since=2026-01-02&", "with superseded lines ×remove": "&superseded=1", "tool Edit ×remove": "&tool=Edit", "file cart.go ×remove": "file=cart.go&"} {
		if want := strings.Replace(all, gone, "", 1) + " "; chips[name] != want {
			t.Errorf("%s leads to %q, want %q", name, chips[name], want)
		}
	}
	if len(chips) != 6 {
		t.Errorf("chips %q", chips)
	}
	kinds := links(page, "chosen")
	if !strings.HasSuffix(kinds["Prompts ×remove"], " true") || strings.Contains(kinds["Prompts ×remove"], "kind=") || !strings.Contains(kinds["Errors only"], "kind=prompt&kind=error") ||
		strings.HasSuffix(kinds["All"], " true") {
		t.Errorf("kinds %q", kinds)
	}
	if kinds := links(s.get(t, "/search?q=cart"), "chosen"); !strings.HasSuffix(kinds["All"], " true") {
		t.Errorf("without a kind %q", kinds)
	}
	mustHave(t, s.get(t, "/?machine=9c1f2ab047d3"), `<ul class="chosen on">`)
	for address, want := range map[string]string{"tool=Bash": "tool call", "tool=Read&q=cart": "result,tool call",
		"file=cart.go": "file changed,file read", "file=cart.go&q=cart": "result,tool call", "tool=Bash&kind=error": "error", "tool=Nope": "", "": ""} {
		kinds, asked := map[string]bool{}, false
		nodes(t, s.get(t, "/search?"+address), func(n *html.Node) {
			asked = asked || attr(n, "class") == "hits"
			if attr(n, "class") == "at-line" {
				kind, _, _ := strings.Cut(strings.Join(strings.Fields(words(n)), " "), " line ")
				kinds[kind] = true
			}
		})
		if got := strings.Join(slices.Sorted(maps.Keys(kinds)), ","); got != want || asked != (address != "") {
			t.Errorf("%s finds %q, want %q; asked: %t", address, got, want, asked)
		}
	}
}

// TestSearchBeside: what attachments, file snapshots and the queue say is found, and each hit leads to its line.
func TestSearchBeside(t *testing.T) {
	s := loggedIn(t)
	s.put(t, head("birds"), append(prompt("hello", "m", "2026-11-20T10:00:00Z"),
		`{"type":"attachment","timestamp":"2026-11-20T10:01:00Z","attachment":{"type":"file","filename":"/a.go","content":{"file":{"content":"package heron"}}}}`,
		`{"type":"file-history-snapshot","snapshot":{"timestamp":"2026-11-20T10:01:00Z","trackedFileBackups":{"heron/b.go":{"backupTime":"2026-11-20T10:01:00Z"}}}}`,
		`{"type":"queue-operation","operation":"enqueue","timestamp":"2026-11-20T10:02:00Z","content":"the heron again"}`)...)
	var lines []string
	nodes(t, s.get(t, "/search?q=heron&kind=other"), func(n *html.Node) {
		if attr(n, "class") != "at-line" {
			return
		}
		address := attr(n, "href")
		_, line, _ := strings.Cut(strings.Split(address, "?")[0], "/L/")
		lines = append(lines, line)
		mustHave(t, s.get(t, address), `id="L`+line+`"`)
	})
	if got := strings.Join(lines, " "); got != "4 3 2" {
		t.Errorf("found lines %q", got)
	}
}

// TestSearchGroups: hits stand with their session; a title that is written again and again is one hit.
func TestSearchGroups(t *testing.T) {
	s := loggedIn(t)
	lines := prompt("find the heron", "m", "2026-11-20T10:00:00Z")
	for range 6 {
		lines = append(lines, `{"type":"ai-title","aiTitle":"The heron of the pond","sessionId":"x"}`)
	}
	for i := range 6 {
		lines = append(lines, fmt.Sprintf(`{"type":"user","uuid":"u%d","timestamp":"2026-11-20T10:0%d:00Z","message":{"role":"user","content":"heron number %d"}}`, i, i, i))
	}
	s.put(t, head("birds"), lines...)
	s.put(t, head("other"), prompt("another heron", "m", "2026-11-19T10:00:00Z")...)
	found, hits := 0, 0
	page := s.get(t, "/search?q=heron")
	nodes(t, page, func(n *html.Node) {
		switch strings.Fields(attr(n, "class") + " -")[0] {
		case "found":
			found++
		case "hit":
			hits++
		}
	})
	if found != 2 || hits < 9 || hits > 11 {
		t.Errorf("%d sessions, %d hits", found, hits)
	}
	mustHave(t, page, "<summary>")
}
