package web_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/limit"
	"github.com/ccship/ccship/server/web"
)

// TestFollowUnshared: what is no longer shared is not announced any more.
func TestFollowUnshared(t *testing.T) {
	s := newSite(t, nil)
	ana := s.addUser(t, "ana", server.Member)
	share := server.Share{Owner: s.owner.ID, With: ana.ID, ProjectHash: "sha-of-shop", Project: "shop"}
	kit.Must(t, s.store.AddShare(t.Context(), share))
	s.login(t, s.addKey(t, ana, "tower"))
	heard := s.listen(t, "/events")
	s.put(t, head("shared"), `{"type":"user","message":{"role":"user","content":"one"}}`)
	got := <-heard
	kit.Require(t, strings.Contains(got, `"shared"`), "a member hears of %s", got)
	kit.Must(t, s.store.RemoveShare(t.Context(), share))
	s.put(t, head("later"), `{"type":"user","message":{"role":"user","content":"two"}}`)
	s.putAs(t, ana, head("hers"), `{"type":"user","message":{"role":"user","content":"three"}}`)
	kit.Has(t, "after the unshare a member hears", <-heard, `"hers"`)
}

// TestPageRate: pages count towards a user's requests a minute; another user's do not.
func TestPageRate(t *testing.T) {
	s := newSite(t, func(v *web.Viewer) { v.Rates = limit.NewRates(3) })
	s.login(t, s.key) // is led to the first page
	for range 2 {
		s.get(t, "/usage")
	}
	a := s.do(t, "GET", "/usage", nil, nil)
	for n := 0; a.code == http.StatusOK && n < 1000; n++ { // on a slow machine time makes up for some
		a = s.do(t, "GET", "/usage", nil, nil)
	}
	kit.Check(t, a.code == http.StatusTooManyRequests && a.header.Get("Retry-After") != "", "one more: %d %v", a.code, a.header)
	ana := s.addUser(t, "ana", server.Member)
	s.client = newClient(t)
	kit.Equal(t, "another user", s.login(t, s.addKey(t, ana, "tower")).code, http.StatusOK)
}

// TestShareRate: what visitors of a user's links ask for counts together, but not towards the user's own requests.
func TestShareRate(t *testing.T) {
	s := &sharing{site: newSite(t, func(v *web.Viewer) { v.Rates = limit.NewRates(12) }), visitor: newClient(t)}
	s.login(t, s.key)
	s.put(t, head("mine"), spoken("user", "hello"))
	var links []string
	for range 2 {
		links = append(links, s.share(t, "mine"))
	}
	refused := map[string]bool{}
	for n := 0; len(refused) < len(links) && n < 1000; n++ { // a visit takes much less than is given back in its time
		link := links[n%len(links)]
		a := s.visit(t, link)
		if a.code == http.StatusTooManyRequests && a.header.Get("Retry-After") != "" {
			refused[link] = true
		} else if a.code != http.StatusOK {
			t.Errorf("a visit answers %d", a.code)
		}
	}
	kit.Check(t, len(refused) >= len(links), "of the links %q only %v are refused", links, refused)
	s.get(t, "/usage")
}

// TestSlowFormOutlivesLogin: a form that is still being read when its login ends changes nothing.
func TestSlowFormOutlivesLogin(t *testing.T) {
	s := newSite(t, nil)
	s.login(t, s.key)
	in, out := io.Pipe()
	req := kit.Try(http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/account/keys", in)).Must(t)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Expect", "100-continue") // so that the body is sent once the server reads it
	cookies := s.client.Jar.Cookies(req.URL)
	status := make(chan int, 1)
	go func() {
		res, err := s.client.Do(req)
		if err != nil {
			t.Error(err)
			status <- 0
			return
		}
		res.Body.Close()
		status <- res.StatusCode
	}()
	kit.Try(io.WriteString(out, "name=")).Must(t)
	for _, c := range cookies {
		kit.Must(t, s.access.Logout(t.Context(), c.Value))
	}
	kit.Try(io.WriteString(out, "late")).Must(t)
	kit.Must(t, out.Close())
	kit.Equal(t, "a key made after the logout", <-status, http.StatusUnauthorized)
}
