package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/limit"
	"github.com/ccship/ccship/server/web"
)

// TestFollowUnshared: what is no longer shared is not announced any more.
func TestFollowUnshared(t *testing.T) {
	s := newSite(t, nil)
	ana := s.addUser(t, "ana", server.Member)
	share := server.Share{Owner: s.owner.ID, With: ana.ID, ProjectHash: "sha-of-shop", Project: "shop"}
	if err := s.store.AddShare(t.Context(), share); err != nil {
		t.Fatal(err)
	}
	s.login(t, s.addKey(t, ana, "tower"))
	heard := s.listen(t, "/events")
	s.put(t, head("shared"), `{"type":"user","message":{"role":"user","content":"one"}}`)
	if got := <-heard; !strings.Contains(got, `"shared"`) {
		t.Fatalf("a member hears of %s", got)
	}
	if err := s.store.RemoveShare(t.Context(), share); err != nil {
		t.Fatal(err)
	}
	s.put(t, head("later"), `{"type":"user","message":{"role":"user","content":"two"}}`)
	s.putAs(t, ana, head("hers"), `{"type":"user","message":{"role":"user","content":"three"}}`)
	if got := <-heard; !strings.Contains(got, `"hers"`) {
		t.Errorf("after the unshare a member hears of %s", got)
	}
}

// TestPageRate: pages count towards a user's requests a minute; another user's do not.
func TestPageRate(t *testing.T) {
	s := newSite(t, func(v *web.Viewer) { v.Rates = limit.NewRates(3) })
	s.login(t, s.key) // is led to the first page
	for range 2 {
		s.get(t, "/usage")
	}
	if a := s.do(t, "GET", "/usage", nil, nil); a.code != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
		t.Errorf("one more: %d %v", a.code, a.header)
	}
	ana := s.addUser(t, "ana", server.Member)
	s.client = newClient(t)
	if a := s.login(t, s.addKey(t, ana, "tower")); a.code != http.StatusOK {
		t.Errorf("another user: %d", a.code)
	}
}
