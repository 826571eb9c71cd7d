package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// TestShortAddresses: lists lead to addresses that people can send, which lead on to addresses of the same form; what a
// reader may not see neither lengthens them nor answers to them.
func TestShortAddresses(t *testing.T) {
	s := loggedIn(t)
	const (
		mine   = "1e0a84da-0000-4000-8000-000000000001"
		hidden = "1e0a84da-7000-4000-8000-000000000002"
	)
	robin := s.addUser(t, "robin", server.Member)
	s.putAs(t, robin, head(mine), `{"type":"user","message":{"role":"user","content":"fix the cart"}}`)
	mustHave(t, s.get(t, "/"), `href="/sessions/1e0a84da"`)
	owner := s.addUser(t, "kims-other", server.Member)
	s.putAs(t, owner, head(hidden), `{"type":"user","message":{"role":"user","content":"the secret plan"}}`)
	mustHave(t, s.get(t, "/"), `href="/sessions/1e0a84da-0"`, `href="/sessions/1e0a84da-7"`)
	page := s.get(t, "/sessions/1e0a84da-0")
	mustHave(t, page, "fix the cart", `href="/sessions/1e0a84da-0/share"`)
	if a := s.do(t, "GET", "/sessions/1e0a84da", nil, nil); a.code != http.StatusConflict || !strings.Contains(a.body, "several sessions begin with") ||
		!strings.Contains(a.body, `href="/sessions/`+hidden) {
		t.Errorf("the beginning of two: %d %s", a.code, a.body)
	}
	s.as(t, robin)
	mustHave(t, s.get(t, "/"), `href="/sessions/1e0a84da"`)
	mustHave(t, s.get(t, "/sessions/1e0a"), "fix the cart", `href="/sessions/1e0a84da/share"`)
	for _, path := range []string{"1e0a84da-7", hidden, "1e0", "1e0a84da-7/L/0", "1e0a84da-7/tail?after=-1", "1e0a84da-7/export?format=md"} {
		a := s.do(t, "GET", "/sessions/"+path, nil, nil)
		kit.Check(t, a.code == http.StatusNotFound && !strings.Contains(a.body, "secret"), "%s: %d", path, a.code)
	}
}

// TestProjectAddress: a project has its name in its address. It is one project on all machines; two repositories of one
// name on one machine are told apart.
func TestProjectAddress(t *testing.T) {
	s := loggedIn(t)
	for _, x := range []struct{ id, hash, name, cwd, machine string }{
		{"here", "h1", "git-sync", "/home/kim/git-sync", "m1"}, {"there", "h2", "git-sync", "/srv/git-sync", "m2"},
		{"work", "h3", "shop", "/home/kim/work/shop", "m1"}, {"play", "h4", "shop", "/home/kim/play/shop", "m1"},
	} {
		h := head(x.id)
		h.ProjectHash, h.Project, h.Cwd, h.Machine = x.hash, x.name, x.cwd, x.machine
		s.put(t, h, prompt(x.id, "m", ago(time.Hour))...)
	}
	projects := s.get(t, "/projects?bare=1")
	mustHave(t, projects, `href="/p/git-sync"`, `href="/p/work%2Fshop"`, `href="/p/play%2Fshop"`)
	mustLack(t, projects, "h1", "h3")
	kit.Equal(t, "the project is listed times", strings.Count(projects, `href="/p/git-sync"`), 1)
	page := s.get(t, "/p/git-sync")
	mustHave(t, page, "<bdi>here</bdi>", "<bdi>there</bdi>", `action="/p/git-sync"`, `href="/p/git-sync?view=failed"`)
	mustLack(t, page, "<bdi>work</bdi>", "<bdi>play</bdi>")
	page = s.get(t, "/p/work%2Fshop?by=day")
	mustHave(t, page, "<bdi>work</bdi>")
	mustLack(t, page, "<bdi>play</bdi>", "<bdi>here</bdi>")
	mustHave(t, s.get(t, "/beside?project=work%2Fshop"), "<bdi>work</bdi>")
	kit.Equal(t, "a choice of the project leads to", s.do(t, "GET", "/?project=git-sync&view=failed", nil, nil).path,
		"/p/git-sync?view=failed")
	mustHave(t, s.get(t, "/p/none"), "No session matches")
}

// TestChoose: an address that means sessions of several users shows none of them, but a page to choose; links of pages
// name the user.
func TestChoose(t *testing.T) {
	s := loggedIn(t)
	owner := s.owner
	for _, name := range []string{"ann", "bob"} {
		u := s.addUser(t, name, server.Member)
		h := head("twice")
		s.putAs(t, u, h, `{"type":"user","message":{"role":"user","content":"written by `+name+`, a wombat"}}`)
		h.SessionID, h.Parent = "twice/agent-1", "twice"
		s.putAs(t, u, h, `{"type":"user","message":{"role":"user","content":"agent of `+name+`"}}`)
	}
	for _, path := range []string{sessionPath("twice", ""), "/sessions/twice", sessionPath("twice", "/prompts"), sessionPath("twice", "/entry/0"),
		sessionPath("twice", "/bytes/0"), sessionPath("twice", "/compare"), sessionPath("twice", "/export", "format", "md"), sessionPath("twice", "/context"),
		sessionPath("twice", "/artifacts"), sessionPath("twice", "/tail", "after", "-1"), sessionPath("twice", "/L/0"), sessionPath("twice", "/document", "path", "a"),
		sessionPath("twice", "/file", "name", "a"), "/drops?session=twice"} {
		a := s.do(t, "GET", path, nil, nil)
		kit.Check(t, a.code == http.StatusConflict && !strings.Contains(a.body, "written by") &&
			strings.Contains(a.body, "<bdi>ann</bdi>") && strings.Contains(a.body, "<bdi>bob</bdi>"),
			"%s: %d %s", path, a.code, a.body)
	}
	a := s.do(t, "POST", sessionPath("twice", "/documents"), map[string][]string{"path": {"x.md"}}, nil)
	kit.Equal(t, "a link request for either", a.code, http.StatusConflict)
	for name, other := range map[string]string{"ann": "bob", "bob": "ann"} {
		u := s.addUser(t, name, server.Member)
		page := s.get(t, sessionPath("twice", "", "owner", fmt.Sprint(u.ID)))
		mustHave(t, page, "written by "+name, "agent of "+name)
		mustLack(t, page, "of "+other, "by "+other)
		for _, href := range hrefs(t, page) {
			kit.Check(t, !strings.HasPrefix(href, "/sessions/") || strings.Contains(href, fmt.Sprintf("owner=%d", u.ID)),
				"the page of %s links to %s", name, href)
		}
	}
	// Own comes first: nobody can put the page to choose before the owner's own session.
	s.putAs(t, owner, head("twice"), `{"type":"user","message":{"role":"user","content":"written by the owner"}}`)
	mustHave(t, s.get(t, "/sessions/twice"), "written by the owner")
}

func hrefs(t *testing.T, page string) (out []string) {
	t.Helper()
	nodes(t, page, func(n *html.Node) {
		for _, a := range n.Attr {
			if a.Key == "href" || a.Key == "action" || a.Key == "src" {
				out = append(out, a.Val)
			}
		}
	})
	return out
}

// TestMissing: where there is nothing, the page has the navigation of others and says where to look; who is not logged
// in is shown neither.
func TestMissing(t *testing.T) {
	s := loggedIn(t)
	stranger := &site{Server: s.Server, client: &http.Client{}, base: s.base}
	const nav, form = `<nav class="nav" aria-label="Main">`, `<form class="find" role="search"`
	for _, path := range []string{"/nowhere", "/sessions/none", "/sessions/none/compare", "/sessions"} {
		a := s.do(t, "GET", path, nil, nil)
		mustHave(t, a.body, nav, form, ">Log out<", "Not found", "choose from", `<a href="/search">search</a>`)
		kit.Equal(t, path, a.code, 404)
	}
	a := stranger.do(t, "GET", "/nowhere", nil, nil)
	mustHave(t, a.body, "There is no page at this address", `<a href="/login">log in</a>`)
	kit.Check(t, a.code == 404 && !strings.Contains(a.body, nav) && !strings.Contains(a.body, "Log out") &&
		!strings.Contains(a.body, "kim"), "%d, %s", a.code, a.body)
	// Other errors keep the navigation too.
	mustHave(t, s.do(t, "GET", "/search?q=x&since=never", nil, nil).body, nav)
}

// TestMarks: a reader stars, names, tags and notes a session; lists show it and are narrowed by it. Nobody else sees it.
func TestMarks(t *testing.T) {
	s := loggedIn(t)
	s.tour(t)
	s.put(t, head("plain"), prompt("nothing kept", "m", ago(0))...)
	mark := sessionPath(tourID, "/mark")
	a := s.do(t, "POST", mark, url.Values{"name": {"Cents <b>"}, "tags": {"money, open  question,money"}, "note": {"ask\n  Ana & co"}}, nil)
	kit.Require(t, a.code == 200 && strings.HasPrefix(a.path, "/sessions/"+tourID), "%d %s", a.code, a.path)
	s.do(t, "POST", mark, url.Values{"only": {"star"}, "star": {"1"}}, nil)
	page := s.get(t, sessionPath(tourID, ""))
	mustHave(t, page, "Cents &lt;b&gt;", "★ Starred", `href="/?tag=money"`, `href="/?tag=open-question"`, "ask\n  Ana &amp; co", `value="money, open-question"`)
	for _, path := range []string{"/", "/?view=starred", "/?tag=open-question", "/beside?current=x&view=starred", "/search?q=cart"} {
		mustHave(t, s.get(t, path), "Cents &lt;b&gt;")
	}
	mustLack(t, s.get(t, "/?view=starred"), "nothing kept")
	mustLack(t, s.get(t, "/?tag=money"), "nothing kept")
	mustHave(t, s.get(t, "/?tag=money"), `aria-current="true" href="/">money`)
	s.wants(t, 400, "POST", mark, url.Values{"note": {strings.Repeat("x", 4001)}})
	s.do(t, "POST", mark, url.Values{"only": {"star"}}, nil)
	page = s.get(t, sessionPath(tourID, ""))
	mustHave(t, page, "☆ Star", "Cents &lt;b&gt;")
	// Another owner sees the session, and nothing of what is kept.
	ana := s.addUser(t, "ana", server.Owner)
	s.login(t, s.addKey(t, ana, "desk"))
	mustLack(t, s.get(t, sessionPath(tourID, "")), "Cents &lt;b&gt;", "open-question", "Ana &amp; co")
	mustLack(t, s.get(t, "/"), "Cents &lt;b&gt;", "open-question")
	mustLack(t, s.get(t, "/search?q=cart"), "Cents &lt;b&gt;")
	// For a member it does not exist.
	lee := s.addUser(t, "lee", server.Member)
	s.login(t, s.addKey(t, lee, "table"))
	s.wants(t, 404, "POST", mark, url.Values{"star": {"1"}})
}

// TestSavedViews: a reader saves a list with its filters and a search, finds them next to the other views, and removes
// them. Nobody else sees them.
func TestSavedViews(t *testing.T) {
	s := loggedIn(t)
	s.tour(t)
	mustLack(t, s.get(t, "/"), "Save this view", "Saved views")
	mustLack(t, s.get(t, "/search"), "Save this search")
	mustHave(t, s.get(t, "/?view=failed&q=cents"), "Save this view", `name="query" value="q=cents&amp;view=failed"`)
	save := func(name, page, query, lands string) {
		t.Helper()
		a := s.do(t, "POST", "/views", url.Values{"name": {name}, "page": {page}, "query": {query}}, nil)
		got := a.path
		kit.Check(t, a.code == 200 && got == lands, "%q: %d, lands on %s, want %s", name, a.code, got, lands)
	}
	save("Cents <b>", "sessions", "q=cents&view=failed", "/?q=cents&view=failed")
	save("Halves", "search", "q=rounding+kind:prompt", "/search?q=rounding+kind%3Aprompt")
	save("Lately", "sessions", "since=7d", "/?since=7d")
	page := s.get(t, "/")
	mustHave(t, page, "Saved views", `href="/?q=cents&amp;view=failed"><bdi>Cents &lt;b&gt;</bdi>`, `href="/search?q=rounding&#43;kind%3Aprompt"><bdi>Halves</bdi>`)
	mustLack(t, page, "Save this view", "Remove this saved view")
	mustHave(t, s.get(t, "/?view=failed&q=cents&after=&by=project"), `aria-current="true" href="/?q=cents&amp;view=failed"`, "Remove this saved view")
	mustHave(t, s.get(t, "/search?q=rounding+kind:prompt"), `aria-current="true" href="/search?q=rounding&#43;kind%3Aprompt"`, "Remove this saved view")
	mustHave(t, s.get(t, "/search?q=rounding"), "Save this search", "Halves")
	mustHave(t, s.get(t, "/?since=7d"), "7 days ago", `<input name="since" value="7d">`, tourID)
	for _, bad := range []url.Values{{"name": {" "}, "query": {"q=x"}}, {"name": {"x"}, "query": {""}}, {"name": {strings.Repeat("x", 81)}, "query": {"q=x"}}} {
		s.wants(t, 400, "POST", "/views", bad)
	}
	ana := s.addUser(t, "ana", server.Owner)
	s.login(t, s.addKey(t, ana, "desk"))
	mustLack(t, s.get(t, "/"), "Cents &lt;b&gt;", "Halves", "Saved views")
	s.do(t, "POST", "/views", url.Values{"name": {"Halves"}, "page": {"search"}, "query": {"q=rounding+kind:prompt"}, "remove": {"1"}}, nil)
	s.login(t, s.key)
	mustHave(t, s.get(t, "/"), "Halves")
	a := s.do(t, "POST", "/views", url.Values{"name": {"Halves"}, "page": {"search"}, "query": {"q=rounding+kind:prompt"}, "remove": {"1"}}, nil)
	kit.Check(t, a.code == 200 && a.path == "/search?q=rounding+kind%3Aprompt", "%d, lands on %s", a.code, a.path)
	mustLack(t, s.get(t, "/"), "Halves")
}

// TestOneRepository: clones of a repository have one name in lists and next to results; each of their names and of
// their hashes chooses all of them, and nothing of another repository of that name.
func TestOneRepository(t *testing.T) {
	s := newSite(t, nil)
	bob := s.addUser(t, "bob", server.Member)
	for _, x := range []struct{ id, cwd, name, hash, repository, prompt, minute string }{
		{"one", "/srv/store", "store", "h1", "r", "Round the totals", "03"},
		{"two", "/home/kim/play/shop", "shop", "h2", "q", "Another cart", "01"},
		{"three", "/home/kim/work/shop", "shop", "h3", "r", "Log the cart", "02"},
	} {
		h := head(x.id)
		h.Cwd, h.Project, h.ProjectHash, h.Repository = x.cwd, x.name, x.hash, x.repository
		s.put(t, h, `{"type":"user","uuid":"p","timestamp":"2026-11-20T08:`+x.minute+`:00Z","message":{"role":"user","content":"`+x.prompt+`"}}`,
			`{"type":"assistant","uuid":"e","cwd":"`+x.cwd+`","timestamp":"2026-11-20T08:`+x.minute+`:10Z","message":{"id":"e","role":"assistant","content":[{"type":"tool_use","id":"e","name":"Edit","input":{"file_path":"`+x.cwd+`/cart.go","old_string":"a","new_string":"func round() int {"}}]}}`,
			`{"type":"user","uuid":"re","timestamp":"2026-11-20T08:`+x.minute+`:20Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"e","content":"done"}]},"toolUseResult":{"filePath":"`+x.cwd+`/cart.go","oldString":"a","newString":"func round() int {"}}`)
	}
	s.login(t, s.key)
	const name, other = "store", "Another cart" // the clone that was active last names the repository
	both := []string{"Round the totals", "Log the cart"}
	links := facetLinks(t, s.find(t, "cart"))
	kit.Check(t, links["store 2"] == "cart project:store" && links["shop 1"] == "cart project:shop", "%v", links)
	for _, query := range []string{"project:store", "project:r", "project:h1", "project:h3"} {
		page := s.find(t, query)
		mustHave(t, page, append(both, "2 sessions")...)
		mustLack(t, page, other)
	}
	mustHave(t, s.find(t, "project:shop"), "1 session", other)
	for _, hash := range []string{"h1", "h3"} {
		page := s.get(t, "/why?file=cart.go&project="+hash)
		mustHave(t, page, both...)
		mustLack(t, page, other)
	}
	page := s.get(t, "/p/"+name)
	mustHave(t, page, both...)
	mustLack(t, page, other)
	kit.Equal(t, fmt.Sprintf("sessions are of %q in the list", name),
		strings.Count(s.get(t, "/"), "<bdi>"+name+"</bdi>"), 2)
	kit.Must(t, s.store.AddShare(t.Context(), server.Share{Owner: s.owner.ID, With: bob.ID, ProjectHash: "h3", Created: today}))
	s.login(t, s.addKey(t, bob, "desk"))
	for _, page := range []string{s.find(t, "project:store"), s.find(t, "project:h1"), s.get(t, "/p/store"), s.get(t, "/why?file=cart.go&project=h1"), s.find(t, "cart"), s.get(t, "/")} {
		mustLack(t, page, "Round the totals", other, "<bdi>store", ">store<")
	}
	mustHave(t, s.get(t, "/why?file=cart.go&project=h3"), "Log the cart")
}

// TestRetentionOnPages: the page of a session says what rules took of it, and when one takes it or why none does.
func TestRetentionOnPages(t *testing.T) {
	s := loggedIn(t)
	at := today.UTC().Truncate(time.Second).Add(-10 * 24 * time.Hour)
	stamp := at.Format(time.RFC3339)
	for _, id := range []string{"gone", "starred", "waiting", "rewound"} {
		s.put(t, head(id), append(prompt(id, "claude-opus-4-8", stamp),
			prompt("more of "+id, "claude-opus-4-8", stamp)...)...)
	}
	h := head("rewound")
	h.Generation, h.RewoundTo = 1, 2
	s.put(t, h, prompt("other", "claude-opus-4-8", stamp)...)
	for _, id := range []string{"gone", "starred", "waiting", "rewound"} {
		mustLack(t, s.get(t, "/sessions/"+id), `id="retired"`, `id="due"`)
	}
	rule := func(r server.RetentionRule) {
		r.Action, r.At, r.By = server.ActionDrop, today, "kim"
		kit.Try(s.store.AddRetentionRule(t.Context(), r)).Must(t)
	}
	apply := func() {
		kit.Try(s.store.Retire(t.Context(), server.RetireOptions{By: "kim", Now: today.Add(100 * 24 * time.Hour)})).Must(t)
	}
	rule(server.RetentionRule{What: server.RetireGenerations, Age: 24 * time.Hour})
	apply()
	mustHave(t, s.get(t, "/sessions/rewound"), `id="retired"`, "2 lines of earlier versions of this file were retired by policy")
	mustLack(t, s.get(t, "/sessions/rewound"), `id="due"`)
	mustLack(t, s.get(t, "/sessions/gone"), `id="retired"`)
	hold := func(session string) {
		kit.Try(s.store.AddHold(t.Context(), server.Hold{Session: session, By: "kim", Why: "a case", At: today})).Must(t)
	}
	hold("rewound")
	a := s.do(t, "POST", "/sessions/starred/mark", url.Values{"only": {"star"}, "star": {"1"}}, nil)
	kit.Require(t, a.code == 200, "star: %d", a.code)
	rule(server.RetentionRule{What: server.RetireSessions, Age: 90 * 24 * time.Hour})
	mustHave(t, s.get(t, "/sessions/rewound"), "No rule of retention takes this session: it is on hold.")
	mustHave(t, s.get(t, "/sessions/starred"), "No rule of retention takes this session: a user gave it a star")
	mustHave(t, s.get(t, "/sessions/waiting"), `id="due"`, "drop sessions not active for 90 days",
		`datetime="`+at.Add(90*24*time.Hour).Format(time.RFC3339)+`"`)
	hold("waiting")
	apply()
	page := s.get(t, "/sessions/gone")
	mustHave(t, page, "Retired by policy on",
		"(drop sessions not active for 90 days), 4 lines; usage is kept", "Lines 1 to 4 are retired by policy.")
	mustLack(t, page, `id="due"`, "answer to")
	for _, below := range []string{"/prompts", "/context", "/compare", "/share", "/export?format=md", "/export?format=html", "/L/1", "?from=end", "?mode=all"} {
		s.wants(t, 200, "GET", "/sessions/gone"+below, nil)
	}
	h = head("gone")
	h.RewoundTo = 4
	s.put(t, h, prompt("back again", "claude-opus-4-8", stamp)...)
	page = s.get(t, "/sessions/gone")
	mustHave(t, page, "Retired by policy on", "4 lines; usage is kept", "back again")
	mustLack(t, page, "are not on the server")
}
