package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlite"
	"github.com/ccship/ccship/server/web"
)

func TestLogin(t *testing.T) {
	s := newSite(t, nil)
	s.tour(t)
	path := sessionPath(tourID, "")
	for _, p := range []string{"/", path, sessionPath(tourID, "/tail", "after", "-1"), sessionPath(tourID, "/image/30/0"), sessionPath(tourID, "/bytes/3"),
		sessionPath(tourID, "/export", "format", "jsonl"), "/events", "/search?q=cart", "/usage", "/drops", "/account"} {
		a := s.do(t, "GET", p, nil, nil)
		kit.Equal(t, p+" without a login", a.code, http.StatusUnauthorized)
		mustLack(t, a.body, "Rounding", "shop")
	}
	mustHave(t, s.do(t, "GET", path, nil, nil).body, `name="key"`, `name="next" value="`+strings.ReplaceAll(path, "&", "&amp;")+`"`)
	mustHave(t, s.get(t, "/login?next=/usage"), `name="next" value="/usage"`, "<code>ccship open</code>")
	mustLack(t, s.get(t, "/login?next=//evil.example"), `value="//evil`)
	a := s.login(t, "wrong")
	kit.Equal(t, "wrong key", a.code, http.StatusUnauthorized)
	mustHave(t, a.body, "not a valid key")
	kit.Equal(t, "login from another site", s.do(t, "POST", "/login", url.Values{"key": {s.key}}, map[string]string{"Sec-Fetch-Site": "cross-site"}).code, http.StatusForbidden)
	kit.Equal(t, "login from another origin", s.do(t, "POST", "/login", url.Values{"key": {s.key}}, map[string]string{"Origin": "https://evil.example"}).code, http.StatusForbidden)
	a = s.do(t, "POST", "/login", url.Values{"key": {" " + s.key + "\n"}, "next": {path}}, nil)
	kit.Check(t, a.code == 200 && a.path == path, "login: %d, leads to %s", a.code, a.path)
	mustHave(t, a.body, "Log out", ">kim<")
	s.do(t, "POST", "/logout", nil, nil)
	s.wants(t, http.StatusUnauthorized, "GET", "/", nil)
}

func TestCookie(t *testing.T) {
	s := newSite(t, nil)
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	a := s.do(t, "POST", "/login", url.Values{"key": {s.key}, "next": {"//evil.example/"}}, nil)
	kit.Equal(t, "a login leads to", a.header.Get("Location"), "/")
	c := a.header.Get("Set-Cookie")
	mustHave(t, c, "HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=")
	kit.Check(t, !strings.Contains(c, s.key) && !strings.Contains(c, "Secure"), "cookie %q", c)
	secure := httptest.NewTLSServer(s.viewer.Handler())
	defer secure.Close()
	client := secure.Client()
	client.CheckRedirect = s.client.CheckRedirect
	res := kit.Try(client.PostForm(secure.URL+"/login", url.Values{"key": {s.key}})).Must(t)
	defer res.Body.Close()
	kit.Has(t, "over TLS the cookie is", res.Header.Get("Set-Cookie"), "Secure")
	kit.Try(s.store.RevokeKey(t.Context(), "laptop", time.Now())).Must(t)
	s.wants(t, http.StatusUnauthorized, "GET", "/", nil)
}

func TestGuessing(t *testing.T) {
	s := newSite(t, nil)
	var a answer
	for range 40 {
		if a = s.login(t, "ccs_"+strings.Repeat("0", 64)+time.Now().String()); a.code == http.StatusTooManyRequests {
			break
		}
	}
	kit.Require(t, a.code == http.StatusTooManyRequests && a.header.Get("Retry-After") != "", "after 40 wrong keys: %d", a.code)
	mustHave(t, a.body, "Too many failed logins")
}

// TestScope: what a member may not see is not there, on any page.
func TestScope(t *testing.T) {
	s := newSite(t, nil)
	s.tour(t)
	ana := s.addUser(t, "ana", server.Member)
	h := head("ana-1")
	h.ProjectHash, h.Project, h.Cwd, h.Host = "sha-of-garden", "garden", "/home/ana/garden", "anas-tower"
	s.putAs(t, ana, h, `{"type":"user","uuid":"a","timestamp":"2026-11-20T08:00:00Z","message":{"role":"user","content":"Water the cart"}}`)
	s.login(t, s.addKey(t, ana, "tower"))
	for _, p := range []string{"/", "/?project=sha-of-shop", "/?q=cart", "/search?q=cart", "/search?q=cart+is:lost", "/usage?range=all", "/usage?range=all&by=project", "/drops", "/account"} {
		page := s.get(t, p)
		mustLack(t, page, "Rounding", "kims-laptop", tourID, ">shop<")
		if p == "/" {
			mustHave(t, page, "Water the cart", "garden")
			mustLack(t, page, `name="user"`)
		}
	}
	for _, p := range []string{"", "/L/3", "/tail", "/prompts", "/entry/3", "/bytes/3", "/image/30/0", "/compare", "/export"} {
		s.wants(t, http.StatusNotFound, "GET", sessionPath(tourID, p, "after", "-1", "format", "md"), nil)
	}
	s.wants(t, http.StatusNotFound, "GET", sessionPath(agentID, ""), nil)
	kit.Must(t, s.store.AddShare(t.Context(), server.Share{Owner: s.owner.ID, With: ana.ID, ProjectHash: "sha-of-shop", Project: "shop", Created: time.Now()}))
	mustHave(t, s.get(t, "/"), "Rounding", "Water the cart")
	s.get(t, sessionPath(tourID, ""))
}

var secretKey = regexp.MustCompile(`ccs_[0-9a-f]{64}`)

func TestAccountKeys(t *testing.T) {
	s := newSite(t, func(v *web.Viewer) { v.Quota = server.Quota{Bytes: 2000, Sessions: 3} })
	ana := s.addUser(t, "ana", server.Member)
	first := s.addKey(t, ana, "tower")
	s.login(t, first)
	mustLack(t, s.get(t, "/account"), "<bdi>laptop", "Add a user")
	mustHave(t, s.get(t, "/account"), "<span>0 B stored of 2.0 kB</span><span>0 of 3 sessions</span>")
	a := s.do(t, "POST", "/account/keys", url.Values{"name": {"phone"}}, nil)
	made := secretKey.FindString(a.body)
	kit.Require(t, a.code == 200 && made != "", "%d %s", a.code, a.body)
	mustLack(t, s.get(t, "/account"), made)
	kit.Err(t, "a key made here", nil)(s.access.Key(t.Context(), "test", made))
	s.wants(t, http.StatusBadRequest, "POST", "/account/keys", url.Values{"name": {"phone"}})
	for _, name := range []string{"", " ", strings.Repeat("x", 101), "a\nb", "@me"} {
		s.wants(t, http.StatusBadRequest, "POST", "/account/keys", url.Values{"name": {name}})
	}
	a = s.do(t, "POST", "/account/keys/rotate", url.Values{"name": {"phone"}}, nil)
	again := secretKey.FindString(a.body)
	kit.Check(t, again != "" && again != made, "a rotated key: %d %s", a.code, a.body)
	for _, act := range []string{"revoke", "rotate"} {
		s.wants(t, http.StatusBadRequest, "POST", "/account/keys/"+act, url.Values{"name": {"laptop"}})
	}
	kit.Err(t, "the owner's key", nil)(s.access.Key(t.Context(), "test", s.key))
	s.do(t, "POST", "/account/keys/revoke", url.Values{"name": {"phone"}}, nil)
	kit.Equal(t, "from a neighbour's site", s.do(t, "POST", "/account/keys/revoke", url.Values{"name": {"phone"}}, map[string]string{"Sec-Fetch-Site": "same-site"}).code, http.StatusForbidden)
}

func TestAccountUsers(t *testing.T) {
	s := newSite(t, nil)
	s.login(t, s.key)
	if a := s.do(t, "POST", "/account/users", url.Values{"name": {"ben"}, "role": {"viewer"}}, nil); a.code != 200 {
		t.Fatalf("%d %s", a.code, a.body)
	}
	a := s.do(t, "POST", "/account/link", url.Values{"user": {"ben"}}, nil)
	link := regexp.MustCompile(`/login\?ticket=([A-Z0-9.]+)`).FindStringSubmatch(a.body)
	kit.Require(t, link != nil, "%v", a.body)
	owner := s.client
	s.client = newClient(t)
	a = s.do(t, "POST", "/login", url.Values{"ticket": {link[1]}}, nil)
	mustHave(t, a.body, ">ben<")
	for _, p := range []string{"users", "users/role", "users/disable"} {
		s.wants(t, http.StatusNotFound, "POST", "/account/"+p, url.Values{"name": {"eve"}, "user": {"kim"}, "role": {"owner"}})
	}
	s.wants(t, http.StatusNotFound, "POST", "/account/link", url.Values{"user": {"kim"}})
	ben := s.client
	s.client = owner
	for _, form := range []url.Values{{"user": {"kim"}, "role": {"viewer"}}, {"user": {"ben"}, "role": {"king"}}} {
		s.wants(t, http.StatusBadRequest, "POST", "/account/users/role", form)
	}
	s.wants(t, http.StatusBadRequest, "POST", "/account/users/disable", url.Values{"user": {"kim"}})
	s.do(t, "POST", "/account/users/role", url.Values{"user": {"ben"}, "role": {"member"}}, nil)
	s.do(t, "POST", "/account/users/disable", url.Values{"user": {"ben"}}, nil)
	s.client = ben
	s.wants(t, http.StatusUnauthorized, "GET", "/", nil)
}

func TestAccountShares(t *testing.T) {
	s := newSite(t, nil)
	s.tour(t)
	ana := s.addUser(t, "ana", server.Member)
	anas := s.addKey(t, ana, "tower")
	s.login(t, s.key)
	a := s.do(t, "POST", "/account/shares", url.Values{"project": {"sha-of-shop"}, "with": {"ana"}}, nil)
	mustHave(t, a.body, "shop is shared with ana, without its linked documents", "Stop sharing")
	mustLack(t, a.body, ", linked documents too")
	a = s.do(t, "POST", "/account/shares", url.Values{"project": {"sha-of-shop"}, "with": {"ana"}, "documents": {"1"}}, nil)
	mustHave(t, a.body, "shop is shared with ana, with its linked documents", "with ana, with linked documents")
	for _, form := range []url.Values{{"project": {"none"}, "with": {"ana"}}, {"project": {"sha-of-shop"}, "with": {"eve"}}, {"project": {"sha-of-shop"}, "with": {"kim"}}} {
		s.wants(t, http.StatusBadRequest, "POST", "/account/shares", form)
	}
	s.put(t, server.Head{SessionID: "nameless", ProjectHash: "sha-of-nameless", Machine: machine}, `{"type":"user","uuid":"n"}`)
	a = s.do(t, "POST", "/account/shares", url.Values{"project": {"sha-of-nameless"}, "with": {"ana"}}, nil)
	mustHave(t, a.body, "sha-of-nameless is shared with ana")
	owner := s.client
	s.client = newClient(t)
	s.login(t, anas)
	s.get(t, sessionPath(tourID, ""))
	s.get(t, sessionPath("nameless", ""))
	for _, form := range []url.Values{{"project": {"sha-of-shop"}, "with": {"ana"}}, {"owner": {"kim"}, "project": {"sha-of-shop"}, "with": {"ana"}}} {
		a := s.do(t, "POST", "/account/shares", form, nil)
		kit.Check(t, a.code != 200, "a member shares what is not his: %v", form)
	}
	ana2 := s.client
	s.client = owner
	s.do(t, "POST", "/account/shares/remove", url.Values{"project": {"sha-of-shop"}, "with": {"ana"}, "owner": {"kim"}}, nil)
	s.client = ana2
	s.wants(t, http.StatusNotFound, "GET", sessionPath(tourID, ""), nil)
}

// crowd is a store that reads no more users than a page shows or offers.
type crowd struct {
	*sqlite.Store
	t *testing.T
}

// Users fails: pages that it is not a list of users on must not ask for all of them.
func (c crowd) Users(ctx context.Context) ([]server.User, error) {
	c.t.Error("a page reads all users")
	return c.Store.Users(ctx)
}

func (c crowd) FirstUsers(ctx context.Context, most int) ([]server.User, error) {
	kit.Check(c.t, most <= 201, "a page reads %d users", most)
	return c.Store.FirstUsers(ctx, most)
}

// TestManyUsers: with more users than a list can offer a page asks for a name, and shows sessions of that user. It
// never reads all users.
func TestManyUsers(t *testing.T) {
	s := loggedIn(t)
	var last server.User
	for i := range 205 {
		last = s.addUser(t, fmt.Sprint("user", i), server.Member)
	}
	s.putAs(t, s.owner, head("kims"), prompt("kims", "m", ago(0))...)
	s.putAs(t, last, head("lasts"), prompt("lasts", "m", ago(0))...)
	v := kit.Try(web.New(crowd{s.store, t}, s.access)).Must(t)
	s.Config.Handler = v.Handler()
	page := s.get(t, "/")
	mustHave(t, page, "<span>user204</span>", "<span>kim</span>")
	mustLack(t, page, "user3<")
	page = s.get(t, "/?user=user204")
	mustHave(t, page, "<span>user204</span>", `name="user" value="user204"`)
	mustLack(t, page, `data-session="kims"`, `<select name="user"`)
	mustHave(t, s.get(t, "/?user=nobody"), "<span>user204</span>", "<span>kim</span>")
	mustHave(t, s.get(t, "/search?q=lasts+user:user204"), "lasts", "<span>user204</span>", "1 session, best first.")
	s.get(t, "/usage?by=user")
	page = s.get(t, "/beside?user=user204")
	mustHave(t, page, "lasts")
	mustLack(t, page, "kims")
	s.get(t, "/activity")
}

// TestDownloadOutlivesLogin: a download ends once its reader has logged out. It is longer than what connections take
// before they are read.
func TestDownloadOutlivesLogin(t *testing.T) {
	s := loggedIn(t)
	const lines, length = 24, 1 << 20
	long := make([]string, lines)
	for i := range long {
		long[i] = fmt.Sprintf(`{"pad":%q}`, strings.Repeat("x", length))
	}
	s.put(t, head("long"), long...)
	res := kit.Try(s.client.Get(s.URL + sessionPath("long", "/export", "format", "jsonl"))).Must(t)
	defer res.Body.Close()
	kit.Equal(t, "status", res.StatusCode, http.StatusOK)
	s.do(t, "POST", "/logout", nil, nil)
	kit.Pass(time.Second) // the login is looked up at most once in that time
	n, err := io.Copy(io.Discard, res.Body)
	kit.Check(t, err != nil && n < lines*length, "%d bytes come, %v", n, err)
}
