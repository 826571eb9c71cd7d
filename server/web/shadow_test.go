package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

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
