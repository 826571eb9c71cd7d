package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

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
