package web_test

import (
	"net/url"
	"testing"
)

// TestAddressOfPages: what a page says to type elsewhere, and whether a link opens elsewhere, follows from its address.
func TestAddressOfPages(t *testing.T) {
	s := loggedIn(t)
	empty := s.get(t, "/")
	mustHave(t, empty, "~/.claude/projects", "CLAUDE_CONFIG_DIR", "of this machine only", "ccship setup --server-url https://HOST</code>")
	here, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := map[string]string{"Host": "ccship.example.org", "Cookie": s.client.Jar.Cookies(here)[0].String()}
	public := s.do(t, "GET", "/", nil, elsewhere).body
	mustHave(t, public, "ccship setup --server-url http://ccship.example.org</code>")
	mustLack(t, public, "of this machine only")
	s.tour(t)
	const warning = "nobody else can open a link"
	mustHave(t, s.get(t, sessionPath(tourID, "/share")), warning)
	mustLack(t, s.get(t, "/share-links"), warning)
	a := s.do(t, "GET", sessionPath(tourID, "/share"), nil, elsewhere)
	mustHave(t, a.body, "Create link")
	mustLack(t, a.body, warning)
}
