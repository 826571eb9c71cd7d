package web_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

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
