package web_test

import (
	"fmt"
	"net/http"
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
