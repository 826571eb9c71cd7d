package web_test

import (
	"fmt"
	"net/http"
	"regexp"
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
	if got := sections(t, s.get(t, "/")); len(got) > 2 || !strings.Contains(got[0], "Finished site") || !strings.Contains(got[0], "worktree fix-it") || !strings.Contains(got[0], "worktree 7") {
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

// TestTopSessions: the most expensive sessions count their agents, the longest go by their records, and only those of the
// last 90 days are there; the activity has both with the hours of the week.
func TestTopSessions(t *testing.T) {
	s := loggedIn(t)
	put := func(id, parent string, ago, took time.Duration, output int) {
		h := head(id)
		h.Parent = parent
		end := today.Add(-ago)
		at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
		s.put(t, h, fmt.Sprintf(`{"type":"user","uuid":"a","timestamp":%q,"message":{"role":"user","content":"the %s one"}}`, at(end.Add(-took)), id),
			fmt.Sprintf(`{"type":"assistant","uuid":"b","requestId":"r-%s","timestamp":%q,"message":{"id":"m-%s","role":"assistant","model":"claude-opus-4-5","content":[{"type":"text","text":"ok"}],"usage":{"input_tokens":10,"output_tokens":%d}}}`, id, at(end), id, output))
	}
	put("short", "", time.Hour, time.Minute, 2000)
	put("long", "", 2*time.Hour, 3*time.Hour, 100)
	put("agents", "", 3*time.Hour, time.Minute, 1)
	put("agents/agent-1", "agents", 3*time.Hour, time.Minute, 9000)
	put("ancient", "", 100*24*time.Hour, 99*time.Hour, 90000)
	order := func(view string) string {
		var out []string
		for _, m := range regexp.MustCompile(`data-session="([a-z]+)"`).FindAllStringSubmatch(s.get(t, "/?view="+view), -1) {
			out = append(out, m[1])
		}
		return strings.Join(out, " ")
	}
	for view, want := range map[string]string{"costly": "agents short long", "tokens": "agents short long", "long": "long agents short"} {
		got := order(view)
		kit.Check(t, got == want || view == "long" && got == "long short agents", "%s lists %q, want %q", view, got, want)
	}
	kit.Equal(t, "with a date of the reader's", order("costly&since=2020-01-01"), "ancient agents short long")
	for _, path := range []string{"/activity", "/activity?bare=1"} {
		page := s.get(t, path)
		mustHave(t, page, "Most expensive", "Longest", "the agents one", "3 h", `class="chart heat week"`, `class="chart heat year"`)
		mustLack(t, page, "ancient")
	}
	robin := s.addUser(t, "robin", server.Member)
	s.as(t, robin)
	for _, path := range []string{"/?view=costly", "/?view=long", "/activity"} {
		a := s.do(t, "GET", path, nil, nil)
		kit.Check(t, a.code == http.StatusOK && !strings.Contains(a.body, " one"), "somebody else sees %d %s", a.code, a.body)
	}
}

// TestListsAreBounded: what a session has beside its lines fills no page: checkpoints with long lists of files,
// documents with long names, past versions and epochs.
func TestListsAreBounded(t *testing.T) {
	m := newMeter(t)
	h := head("s")
	m.put(t, h, spoken("user", "go on"))
	path := func(i int) string { return fmt.Sprintf("%s/%d", strings.Repeat("a'b/", 1000), i) }
	var files []string
	for i := range 1000 {
		files = append(files, path(i))
	}
	const many = 12
	for i := range many {
		m.markAs(t, h, server.Checkpoint{ID: fmt.Sprint("c", i), Trigger: "manual", Summary: strings.Repeat("s", 64<<10), ActiveFiles: files, Created: noon})
	}
	var events []server.DocumentEvent
	for i := range 500 {
		events = append(events, server.DocumentEvent{Path: path(i), Change: server.Linked, AddedAt: noon, At: noon, Line: -1})
	}
	m.putDocuments(t, h, events...)
	for i := range 700 { // names as long as they may be
		g := h
		if i%10 == 0 {
			g.Epoch = fmt.Sprint(strings.Repeat("e", 1000), i)
		} else {
			g.Generation, g.Epoch = int64(i), strings.Repeat("e", 1000)+"0"
		}
		m.put(t, g, spoken("user", "again"))
	}
	for _, sub := range []string{"", "/context", "/artifacts", "/compare"} {
		m.page(t, sessionPath("s", sub), 1)
	}
	t.Logf("worst: %d MiB allocated, %d kB written", m.worst.allocated>>20, m.worst.written>>10)
	found := 0
	q := server.CheckpointQuery{Session: "s", Limit: 1000}
	for pages := 0; ; pages++ {
		page, err := m.store.Checkpoints(t.Context(), server.Scope{All: true}, q)
		kit.Require(t, err == nil && len(page.List) <= 2, "a page of %d, %v", len(page.List), err)
		if found += len(page.List); page.Next == "" {
			break
		}
		q.After = page.Next
	}
	kit.Equal(t, "checkpoints on all pages", found, many)
}
