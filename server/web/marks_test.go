package web_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

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
