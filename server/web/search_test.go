package web_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// find fetches what a query finds.
func (s *site) find(t *testing.T, query string) string {
	t.Helper()
	return s.get(t, "/search?"+url.Values{"q": {query}}.Encode())
}

// titles are those of the sessions on a page of results, in its order.
func titles(t *testing.T, page string) (out []string) {
	t.Helper()
	nodes(t, page, func(n *html.Node) {
		if attr(n, "class") == "title" {
			out = append(out, words(n))
		}
	})
	return out
}

// facetLinks are the links next to the results, by their words with the count.
func facetLinks(t *testing.T, page string) map[string]string {
	t.Helper()
	out := map[string]string{}
	nodes(t, page, func(n *html.Node) {
		if n.Data != "li" || !strings.HasPrefix(attr(n.Parent.Parent, "class"), "panel facet") {
			return
		}
		for a := range n.Descendants() {
			if a.Data == "a" {
				at := kit.Try(url.Parse(attr(a, "href"))).Must(t)
				out[strings.Join(strings.Fields(words(n)), " ")] = at.Query().Get("q")
			}
		}
	})
	return out
}

// TestSearchPage: sessions, best first, each with its best lines; a hit has a time, and leads to its line.
func TestSearchPage(t *testing.T) {
	s := loggedIn(t)
	s.tour(t)
	page := s.find(t, "euros")
	mustHave(t, page, "<mark>euros</mark>", "Rounding in the cart", `/L/`, "kims-laptop", `class="at-line"`, "data-stamp", "1 session, best first.")
	mustLack(t, page, "> line ")
	mustHave(t, s.find(t, "euros kind:title"), "No session found")
	for _, q := range []string{`"`, `a"b`, "*", "NEAR(a b)", "-x", "'; DROP TABLE lines; --", "%", "_", "\x00", "\xff", "a AND", "(", "사과", "/(/", "x:y", "is:", "kind:none", "OR", "before:never"} {
		s.find(t, q)
	}
	a := s.do(t, "GET", regexpHref(t, page), nil, nil)
	kit.Check(t, a.code == 200 && strings.HasPrefix(a.path, "/sessions/"), "a hit leads to %d %s", a.code, a.path)
	nodes(t, page, func(n *html.Node) {
		kit.Check(t, attr(n, "type") != "search" || attr(n, "name") != "q" || attr(n, "value") == "euros", "a box has %q", attr(n, "value"))
	})
	for _, path := range []string{"/search", "/search?q=euros", "/usage", sessionPath(tourID, "")} {
		boxes := strings.Count(s.get(t, path), `action="/search"`)
		kit.Equal(t, path+" has boxes to search everything", boxes, 1)
	}
}

// TestSearchRewound: what a rewind took out is found, is marked so, and its link shows it.
func TestSearchRewound(t *testing.T) {
	s := loggedIn(t)
	h := head("rewritten")
	s.put(t, h, `{"type":"user","uuid":"x","message":{"role":"user","content":"the wombat prompt"}}`)
	h.Generation = 1
	s.put(t, h, `{"type":"user","uuid":"y","message":{"role":"user","content":"another"}}`)
	page := s.find(t, "wombat")
	mustHave(t, page, "removed by a rewind</span>", "<mark>wombat</mark>", "generation=0")
	mustHave(t, s.do(t, "GET", regexpHref(t, page), nil, nil).body, "the wombat prompt", "an earlier version")
}

func regexpHref(t *testing.T, page string) string {
	t.Helper()
	var hit string
	nodes(t, page, func(n *html.Node) {
		if attr(n, "class") == "at-line" && hit == "" {
			hit = attr(n, "href")
		}
	})
	kit.Require(t, hit != "", "no hit on %s", page)
	return hit
}

// TestSearchFacets: counts stand next to the results, and each writes its filter into the box, or takes it out.
func TestSearchFacets(t *testing.T) {
	s := loggedIn(t)
	shelf(t, s)
	s.put(t, head("older"), prompt("answer", "claude-opus-4-8", "2026-03-15T04:00:00Z")...)
	links := facetLinks(t, s.find(t, "answer"))
	for name, want := range map[string]string{"shop 3": "answer project:shop", "garden 2": "answer project:garden", "Responses 5": "answer kind:answer",
		"November 2026 4": "answer after:2026-11 before:2026-12", "March 2026 1": "answer after:2026-03 before:2026-04", "with errors": "answer is:error"} {
		kit.Equal(t, fmt.Sprintf("%s leads to, of %v", name, links), links[name], want)
	}
	page := s.find(t, links["garden 2"])
	mustHave(t, page, `value="answer project:garden"`, "2 sessions, best first.")
	back := facetLinks(t, page)
	kit.Check(t, back["garden × remove 2"] == "answer" || back["garden ×remove 2"] == "answer", "the way back is %v", back)
	mustHave(t, s.find(t, links["March 2026 1"]), "1 session, best first.")
	kit.Equal(t, "the way back is", facetLinks(t, s.find(t, links["March 2026 1"]))["March 2026 ×remove 1"], "answer")
}

// TestSearchSays: a page says which word is missing and what of the query was not understood.
func TestSearchSays(t *testing.T) {
	s := loggedIn(t)
	s.tour(t)
	page := s.find(t, "euros zeppelin")
	mustHave(t, page, "No session has all words", "<b>zeppelin</b>", "without <bdi>zeppelin</bdi>")
	mustHave(t, s.find(t, "colour:euros"), `class="note warn">colour: is no filter`)
	for query, note := range map[string]string{
		"project:shpo euros":         `there is no project &#34;shpo&#34;; did you mean project:shop?`,
		"project:zeppelin":           `there is no project &#34;zeppelin&#34;</p>`,
		"machine:kims-labtop euros":  `there is no machine &#34;kims-labtop&#34;; did you mean machine:kims-laptop?`,
		"user:kin euros":             `there is no user &#34;kin&#34;; did you mean user:kim?`,
		"model:claude-ops-4-8 euros": `; did you mean model:claude-opus-4-8?`,
		"kind:promt zeppelin":        `kind: has no &#34;promt&#34;, which is searched; did you mean kind:prompt?`,
		"is:x zeppelin":              `; there are error, starred, lost, running`,
		"projct:shop zeppelin":       `did you mean project:?`,
	} {
		mustHave(t, s.find(t, query), `class="note warn">`, note)
	}
	ana := s.addUser(t, "ana", server.Member)
	anas := s.addKey(t, ana, "tower")
	for _, query := range []string{"project:shop zeppelin", "project:SHOP zeppelin", "model:opus zeppelin", "user:me zeppelin",
		"user:ana zeppelin"} {
		mustLack(t, s.find(t, query), `class="note warn">`)
	}
	empty := s.get(t, "/search")
	mustHave(t, empty, "off by one", "project:shop", `<option value="project:shop">`, `<option value="is:lost">`, " autofocus")
	names := s.get(t, "/search/names")
	mustHave(t, names, `<option value="machine:kims-laptop">`, `<option value="kind:prompt">`, `<option value="model:claude-opus-4-8">`)
	mustLack(t, names, "<html")
	s.login(t, anas) // she has sent nothing and sees nobody
	mustLack(t, s.find(t, "user:ana zeppelin"), `class="note warn">`)
	mustHave(t, s.find(t, "user:kim zeppelin"), `there is no user &#34;kim&#34;</p>`)
	mustHave(t, s.find(t, "project:shpo zeppelin"), `there is no project &#34;shpo&#34;</p>`)
}

// TestSnippets: a snippet shows its Markdown and its terminal's colours, with marks that stay within elements.
func TestSnippets(t *testing.T) {
	s := loggedIn(t)
	said := func(kind, text string) string {
		return fmt.Sprintf(`{"type":%q,"uuid":"u%d","timestamp":"2026-11-20T10:00:00Z","message":{"role":%q,"content":%s}}`, kind, len(text), kind, quoted(text))
	}
	s.put(t, head("md"), said("user", "intro\n\n## Heading\n\nthe **heron *and* wombat** in `a heron` <script>x</script> [see](https://example.org/heron)"),
		`{"type":"user","uuid":"r","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":`+quoted("\x1b[31mwalrus 31 failed\x1b[0m")+`}]}}`)
	page := s.find(t, "heron wombat")
	mustHave(t, page, "intro Heading the <strong><mark>heron</mark> <em>and</em> <mark>wombat</mark></strong>", "<code>a <mark>heron</mark></code>", "&lt;script&gt;", `href="https://example.org/heron"`)
	mustLack(t, page, ">## ", "<p>#", "<script>x", "%EE", "\ue000")
	page = s.find(t, "walrus 31")
	mustHave(t, page, `<span class="f1"><mark>walrus</mark> <mark>31</mark> failed`)
	mustLack(t, page, "␛", "[31m", "[0m")
}

// TestSearchBeside: what attachments, file snapshots and the queue say is found, and each hit leads to its line.
func TestSearchBeside(t *testing.T) {
	s := loggedIn(t)
	s.put(t, head("birds"), append(prompt("hello", "m", "2026-11-20T10:00:00Z"),
		`{"type":"attachment","timestamp":"2026-11-20T10:01:00Z","attachment":{"type":"file","filename":"/a.go","content":{"file":{"content":"package heron"}}}}`,
		`{"type":"file-history-snapshot","snapshot":{"timestamp":"2026-11-20T10:01:00Z","trackedFileBackups":{"heron/b.go":{"backupTime":"2026-11-20T10:01:00Z"}}}}`,
		`{"type":"queue-operation","operation":"enqueue","timestamp":"2026-11-20T10:02:00Z","content":"the heron again"}`)...)
	var lines []string
	nodes(t, s.find(t, "heron kind:other"), func(n *html.Node) {
		if attr(n, "class") != "at-line" {
			return
		}
		address := attr(n, "href")
		_, line, _ := strings.Cut(strings.Split(address, "?")[0], "/L/")
		lines = append(lines, line)
		mustHave(t, s.get(t, address), `id="L`+line+`"`)
	})
	kit.Check(t, len(lines) != 0, "nothing was found")
}

// TestSearchGroups: each session stands once, the best first, with few of its lines; a title that is written again and
// again is none of them: it stands above.
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
	page := s.find(t, "heron")
	got := titles(t, page)
	kit.Check(t, len(got) == 2 && got[0] == "The heron of the pond", "found %q", got)
	hits := strings.Count(page, `class="at-line"`)
	kit.Check(t, hits >= 3 && hits <= 8, "%d hits", hits)
	kit.Equal(t, "titles among the lines", strings.Count(page, ">title</span>"), 0)
}
