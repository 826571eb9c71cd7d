package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/ccship/ccship/e2e/kit"
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
		{"main", "h-shop", "/home/kim/shop"}, {"tree", "h-tree", "/home/kim/shop/.claude/worktrees/fix-it"}, {"seventh", "h-7", "/home/kim/shop/.worktrees/7"},
		{"lone", "h-3", "/home/kim/site/.worktrees/3"}, {"alone", "h-4", "/home/kim/site/.worktrees/4"},
		{"sibling", "h-shop", "/home/kim/shop-fix"}, {"other", "h-garden", "/home/kim/garden"},
	} {
		h := head(x.id)
		h.ProjectHash, h.Cwd, h.Project = x.hash, x.cwd, strings.TrimPrefix(x.hash, "h-")
		s.put(t, h, prompt(x.id, "claude-opus-4-8", ago(time.Hour))...)
	}
	if got := sections(t, s.get(t, "/")); len(got) > 2 || !strings.Contains(got[0], "Stopped before an answer site") || !strings.Contains(got[0], "worktree fix-it") || !strings.Contains(got[0], "worktree 7") {
		t.Errorf("by day %q", got)
	}
	byProject := func(when, page string) {
		t.Helper()
		got := sections(t, page)
		kit.Check(t, len(got) == 3 && strings.HasPrefix(got[1], "shop/home/kim/shop ") &&
			strings.HasPrefix(got[2], "site/home/kim/site ") && strings.Contains(got[2], "alone") &&
			strings.Contains(got[1], "main") && strings.Contains(got[1], "tree") && strings.Contains(got[1], "seventh"),
			"%s: %q", when, got)
	}
	byProject("by project", s.get(t, "/?by=project"))
	byProject("the next time", s.get(t, "/"))
	s.get(t, "/?by=day")
	got := sections(t, s.get(t, "/"))
	kit.Check(t, len(got) <= 2 && !strings.HasPrefix(got[0], "other/"), "by day again %q", got)
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
	kit.Equal(t, "counts", fmt.Sprint(counts), "map[Clau:2 Olde:2 Rewr:0 Save:6]")
	for view, want := range map[string]string{"expiring": "late soon", "expired": "older past", "": "late nearly new older past soon", "failed": "new"} {
		got := s.get(t, "/?view="+view)
		for _, id := range []string{"new", "nearly", "soon", "late", "past", "older"} {
			kit.Equal(t, fmt.Sprintf("view %q shows %s", view, id), strings.Contains(got, "<bdi>"+id+"</bdi></a>"),
				strings.Contains(want, id))
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
	for _, path := range []string{"/", "/now"} {
		var cards []string
		nodes(t, s.get(t, path), func(n *html.Node) {
			if strings.HasPrefix(attr(n, "class"), "run ") {
				cards = append(cards, strings.Join(strings.Fields(words(n)), " "))
			}
		})
		kit.Check(t, len(cards) == 3 && strings.Contains(cards[0], "waiting for permission stuck") &&
			strings.Contains(cards[1], "Claude asks a question asks") && strings.HasPrefix(cards[2], "Working runs") &&
			strings.Contains(cards[0], "make all"), "%s: %q", path, cards)
	}
	page := s.get(t, "/?q=runs")
	kit.Check(t, !strings.Contains(page, `id="now"`), "a filtered list has the wall")
	// Nobody sees what another user runs.
	lee := s.addUser(t, "lee", server.Member)
	a := s.login(t, s.addKey(t, lee, "desk"))
	kit.Require(t, a.code == 200, "%v", a.code)
	page = s.get(t, "/now")
	kit.Check(t, !strings.Contains(page, "stuck"), "another user's session is on the wall")
}

// TestAgentOfThePast: an agent without a report runs only while its session is written.
func TestAgentOfThePast(t *testing.T) {
	s := loggedIn(t)
	for id, age := range map[string]time.Duration{"fresh": time.Second, "stale": time.Hour} {
		at := ago(age)
		s.put(t, head(id), prompt(id, "m", at)[0], fmt.Sprintf(`{"type":"assistant","uuid":"c","timestamp":%q,"message":{"id":"m","role":"assistant","model":"m",`+
			`"stop_reason":"tool_use","content":[{"type":"tool_use","id":"t1","name":"Task","input":{"description":"look","prompt":"look","subagent_type":"Explore"}}]}}`, at))
		page := s.get(t, "/sessions/"+id+"/prompts")
		if strings.Contains(page, "· running") != (id == "fresh") {
			t.Errorf("the agent of the %s session: %s", id, page[strings.Index(page, "<ol"):])
		}
	}
}
