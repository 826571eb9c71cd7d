package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

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
