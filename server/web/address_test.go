package web_test

import (
	"net/http"
	"strings"
	"testing"

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
	s.client = newClient(t)
	s.login(t, s.addKey(t, robin, "robins"))
	mustHave(t, s.get(t, "/"), `href="/sessions/1e0a84da"`)
	mustHave(t, s.get(t, "/sessions/1e0a"), "fix the cart", `href="/sessions/1e0a84da/share"`)
	for _, path := range []string{"1e0a84da-7", hidden, "1e0", "1e0a84da-7/L/0", "1e0a84da-7/tail?after=-1", "1e0a84da-7/export?format=md"} {
		if a := s.do(t, "GET", "/sessions/"+path, nil, nil); a.code != http.StatusNotFound || strings.Contains(a.body, "secret") {
			t.Errorf("%s: %d", path, a.code)
		}
	}
}
