package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/limit"
)

// as is the rig with another one's key.
func (r *rig) as(key string) *rig {
	c := &rig{t: r.t, path: r.path, store: r.store, http: r.http, key: key}
	return c
}

// person adds a user with a key.
func (r *rig) person(name string, role server.Role) *rig {
	r.t.Helper()
	u := kit.Try(r.store.AddUser(r.t.Context(), name, role, server.By{At: time.Now()})).Must(r.t)
	key, hash := auth.NewKey()
	kit.Must(r.t, r.store.AddKey(r.t.Context(), server.Key{User: u, Name: name + "'s key", Hash: hash, Created: time.Now()}))
	return r.as(key)
}

// send makes a call with a JSON body and wants a status.
func (r *rig) send(method, path, body string, want int) answer {
	r.t.Helper()
	a := r.do(method, path, map[string]string{"Content-Type": "application/json"}, strings.NewReader(body))
	kit.Equal(r.t, fmt.Sprintf("%s %s %s: %s", method, path, body, a.body), a.status, want)
	return a
}

func decode[T any](t testing.TB, a answer) T {
	t.Helper()
	var v T
	err := json.Unmarshal(a.body, &v)
	kit.Require(t, err == nil, "%v in %s", err, a.body)
	return v
}

// sessionsOf are the ids that a listing shows.
func (r *rig) sessionsOf(query string) string {
	r.t.Helper()
	var a struct {
		Sessions []struct {
			SessionID string `json:"session_id"`
			User      string
		}
	}
	r.getJSON("/api/sessions?"+query, &a)
	var out []string
	for _, s := range a.Sessions {
		out = append(out, s.User+":"+s.SessionID)
	}
	return strings.Join(out, " ")
}

// TestOthersSessions: what a user may not see is not there, in any call.
func TestOthersSessions(t *testing.T) {
	owner := newRig(t)
	ann, bob, eve := owner.person("ann", server.Member), owner.person("bob", server.Member), owner.person("eve", server.Viewer)
	line := `{"type":"user","uuid":"u1","timestamp":"2026-11-21T08:00:00Z","message":{"role":"user","content":"the purple elephant"}}`
	ann.post(piece{lines: []string{line}}.body("anns"))
	ann.post(piece{gen: 1, rewound: 0, lines: []string{"{}"}, first: 0}.body("anns"))
	owner.waitDerived()

	for _, r := range []*rig{bob, eve} {
		for _, path := range []string{"", "/entries", "/raw", "/digest", "/digest?epochs=all", "/digest?from=0", "/export", "/export?format=json", "/entries?cursor=0.0.1.e1"} {
			r.send("GET", "/api/sessions/anns"+path, "", http.StatusNotFound)
		}
		for path, nothing := range map[string]string{
			"/api/sessions": `"sessions":[]`, "/api/sessions?text=purple": `"sessions":[]`, "/api/groups": `"groups":[]`,
			"/api/search?q=purple&facets=1": `"sessions":[],"total":0`, "/api/usage?by=session": `"rows":[]`,
			"/api/drops": `"drops":[]`, "/api/drops?session=anns": `"drops":[]`, "/api/forgotten": `"forgotten":[]`,
			"/api/sessions?user=ann": `"sessions":[]`, "/api/sessions?user=nobody": `"sessions":[]`,
		} {
			kit.Has(t, path, string(r.send("GET", path, "", 200).body), nothing)
		}
		a := r.send("POST", "/api/digests", `{"sessions":[{"session_id":"anns"},{"session_id":"none"}],"epochs":"all"}`, 200)
		kit.Equal(t, fmt.Sprintf("digests: %s", a.body), strings.Count(string(a.body), `"code":"not_found"`), 2)
	}
	bob.send("DELETE", "/api/sessions/anns", "", http.StatusNotFound)
	eve.send("DELETE", "/api/sessions/anns", "", http.StatusForbidden)
	kit.Equal(t, "the owner sees", owner.sessionsOf(""), "ann:anns")
}

// TestShare: bob sees what ann shares, may not forget it, and sees it no longer when the share ends.
func TestShare(t *testing.T) {
	owner := newRig(t)
	ann, bob, eve := owner.person("ann", server.Member), owner.person("bob", server.Member), owner.person("eve", server.Viewer)
	ann.post(piece{lines: objects("a", 0, 3)}.body("one"))
	ann.post(strings.Replace(piece{lines: objects("a", 0, 3)}.body("two"), `"project_hash":"ph"`, `"project_hash":"other"`, 1))
	bob.post(piece{lines: objects("b", 0, 2)}.body("bobs"))

	bob.send("POST", "/api/shares", `{"owner":"ann","with":"bob","project":"ph"}`, http.StatusNotFound) // not his to give
	eve.send("POST", "/api/shares", `{"with":"bob","project":"ph"}`, http.StatusForbidden)
	ann.send("POST", "/api/shares", `{"with":"bob","project":"nowhere"}`, http.StatusNotFound)
	ann.send("POST", "/api/shares", `{"with":"nobody","project":"ph"}`, http.StatusNotFound)
	ann.send("POST", "/api/shares", `{"with":"bob","project":"w"}`, http.StatusConflict) // both are called so
	ann.send("POST", "/api/shares", `{"with":"bob","project":"ph"}`, http.StatusCreated)
	ann.send("POST", "/api/shares", `{"with":"bob","project":"ph"}`, http.StatusCreated) // again changes nothing
	owner.send("POST", "/api/shares", `{"owner":"ann","with":"eve","project":"other"}`, http.StatusCreated)

	kit.Equal(t, "bob sees", bob.sessionsOf(""), "ann:one bob:bobs")
	kit.Equal(t, "eve sees", eve.sessionsOf(""), "ann:two")
	kit.Equal(t, "bob reads", bob.raw("one", ""), "{\"a\":0}\n{\"a\":1}\n{\"a\":2}\n")
	bob.send("DELETE", "/api/sessions/one", "", http.StatusForbidden)
	for who, want := range map[*rig]int{ann: 2, bob: 1, eve: 1, owner: 2} {
		var a struct{ Shares []any }
		who.getJSON("/api/shares", &a)
		kit.Check(t, len(a.Shares) == want, "%d shares are listed, want %d", len(a.Shares), want)
	}
	ann.send("DELETE", "/api/shares", `{"with":"bob","project":"ph"}`, 200)
	ann.send("DELETE", "/api/shares", `{"with":"bob","project":"ph"}`, http.StatusNotFound)
	kit.Equal(t, "bob still sees", bob.sessionsOf(""), "bob:bobs")
}

// TestRoles: viewers send nothing, only owners manage users, and no member manages another one's keys.
func TestRoles(t *testing.T) {
	owner := newRig(t)
	ann, eve := owner.person("ann", server.Member), owner.person("eve", server.Viewer)
	eve.send("POST", "/api/conversations", bare, http.StatusForbidden)
	for _, r := range []*rig{ann, eve} {
		r.send("GET", "/api/users", "", http.StatusForbidden)
		r.send("POST", "/api/users", `{"name":"x","role":"owner"}`, http.StatusForbidden)
		r.send("PATCH", "/api/users/ann", `{"role":"owner"}`, http.StatusForbidden)
		r.send("POST", "/api/keys", `{"name":"mine","user":"owner"}`, http.StatusNotFound)
		r.send("DELETE", "/api/keys/test", "", http.StatusNotFound)
		r.send("POST", "/api/keys/test/rotate", `{}`, http.StatusNotFound)
		var a struct{ Keys []struct{ User string } }
		r.getJSON("/api/keys", &a)
		kit.Check(t, len(a.Keys) == 1, "keys listed: %+v", a.Keys)
		r.getJSON("/api/keys?user=owner", &a)
		kit.Check(t, len(a.Keys) == 0, "another one's keys: %+v", a.Keys)
	}
	owner.send("PATCH", "/api/users/owner", `{"role":"member"}`, http.StatusConflict)
	owner.send("PATCH", "/api/users/owner", `{"disabled":true}`, http.StatusConflict)
	owner.send("POST", "/api/users", `{"name":"gone","role":"owner"}`, http.StatusCreated)
	owner.send("PATCH", "/api/users/gone", `{"disabled":true}`, 200)
	owner.send("PATCH", "/api/users/owner", `{"role":"member"}`, http.StatusConflict) // a disabled one does not count
	owner.send("PATCH", "/api/users/eve", `{"role":"member"}`, 200)
	eve.send("POST", "/api/conversations", bare, 200)
	owner.send("PATCH", "/api/users/eve", `{"disabled":true}`, 200)
	eve.send("GET", "/api/me", "", http.StatusUnauthorized)
	owner.send("PATCH", "/api/users/eve", `{"disabled":false}`, 200)
	eve.send("GET", "/api/me", "", 200)
	for _, bad := range []string{`{"name":"","role":"member"}`, `{"name":"x","role":"king"}`, `{"name":" x","role":"member"}`,
		`{"name":"x\u0000","role":"member"}`, `{"name":"x","role":"member","admin":true}`, `{`, `[]`, ``} {
		owner.send("POST", "/api/users", bad, http.StatusBadRequest)
	}
	owner.send("POST", "/api/users", `{"name":"ann","role":"member"}`, http.StatusConflict)
	owner.send("POST", "/api/users", `{"name":"zoe","role":"viewer"}`, http.StatusCreated)
}

// TestKeyLife makes, rotates and revokes a key.
func TestKeyLife(t *testing.T) {
	owner := newRig(t)
	ann := owner.person("ann", server.Member)
	type made struct{ Name, User, Key string }
	first := decode[made](t, ann.send("POST", "/api/keys", `{"name":"my laptop"}`, http.StatusCreated))
	ann.send("POST", "/api/keys", `{"name":"my laptop"}`, http.StatusConflict)
	laptop := ann.as(first.Key)
	me := decode[struct {
		User struct{ Name string }
		Key  struct{ Name string }
	}](t, laptop.send("GET", "/api/me", "", 200))
	kit.Check(t, me.User.Name == "ann" && me.Key.Name == "my laptop", "me is %+v", me)
	path := "/api/keys/" + url.PathEscape("my laptop")
	second := decode[made](t, ann.send("POST", path+"/rotate", `{"grace":"1h"}`, 200))
	for _, key := range []string{first.Key, second.Key} {
		ann.as(key).send("GET", "/api/me", "", 200)
	}
	third := decode[made](t, ann.send("POST", path+"/rotate", `{}`, 200))
	ann.as(second.Key).send("GET", "/api/me", "", http.StatusUnauthorized)
	ann.send("DELETE", path, "", 200)
	ann.as(third.Key).send("GET", "/api/me", "", http.StatusUnauthorized)
	ann.send("POST", path+"/rotate", `{}`, http.StatusConflict)
	for _, grace := range []string{"never", "-1s", "10000h"} {
		ann.send("POST", path+"/rotate", fmt.Sprintf(`{"grace":%q}`, grace), http.StatusBadRequest)
	}
	for _, name := range []string{"", " ", "a\\nb", strings.Repeat("x", 101)} {
		ann.send("POST", "/api/keys", `{"name":"`+name+`"}`, http.StatusBadRequest)
	}
	mine := decode[made](t, owner.send("POST", "/api/keys", `{"name":"for ann","user":"ann"}`, http.StatusCreated))
	kit.Equal(t, "the key is of", mine.User, "ann")
	owner.send("POST", "/api/keys", `{"name":"for nobody","user":"nobody"}`, http.StatusNotFound)
}

// TestTicket: a one-time link logs in once, for as long as its user may.
func TestTicket(t *testing.T) {
	owner := newRig(t)
	ann := owner.person("ann", server.Viewer)
	access := auth.New(owner.store, discard())
	link := decode[struct{ URL string }](t, ann.send("POST", "/api/tickets", `{"ttl":"1m"}`, http.StatusCreated)).URL
	u, err := url.Parse(link)
	kit.Require(t, err == nil && u.Host == owner.http.Listener.Addr().String() && u.Path == "/login",
		"the link is %q, %v", link, err)
	ticket := u.Query().Get("ticket")
	token, login, err := access.LoginWithTicket(t.Context(), "r", ticket)
	kit.Require(t, err == nil && login.User.Name == "ann" && login.Key != 0, "login %+v, %v", login, err)
	kit.Err(t, "a second time", auth.ErrUnauthorized)(access.LoginWithTicket(t.Context(), "r", ticket))
	other := auth.New(owner.store, discard()) // another server, or the same after a restart
	l, err := other.Check(t.Context(), token)
	kit.Check(t, err == nil && l.User.Name == "ann", "check says %+v, %v", l, err)
	owner.send("PATCH", "/api/users/ann", `{"disabled":true}`, 200)
	kit.Err(t, "of a disabled user", auth.ErrUnauthorized)(access.Check(t.Context(), token))
	owner.send("PATCH", "/api/users/ann", `{"disabled":false}`, 200)
	kit.Must(t, access.Logout(t.Context(), token))
	kit.Err(t, "after logout", auth.ErrUnauthorized)(access.Check(t.Context(), token))
	kit.Err(t, "logout again", nil)(access.Logout(t.Context(), token))
	for _, ttl := range []string{"soon", "0s", "-1m", "169h"} {
		ann.send("POST", "/api/tickets", fmt.Sprintf(`{"ttl":%q}`, ttl), http.StatusBadRequest)
	}
}

// TestTicketOfKey: what a key asked for ends with it.
func TestTicketOfKey(t *testing.T) {
	owner := newRig(t)
	ann := owner.person("ann", server.Viewer)
	access := auth.New(owner.store, discard())
	link := decode[struct{ URL string }](t, ann.send("POST", "/api/tickets", `{"ttl":"1m"}`, http.StatusCreated)).URL
	_, ticket, _ := strings.Cut(link, "ticket=")
	token, login, err := access.LoginWithTicket(t.Context(), "r", ticket)
	kit.Must(t, err)
	for _, forged := range []string{ticket, ticket + "0", strings.TrimRight(ticket, "0123456789") + "0"} {
		kit.Err(t, "ticket "+forged, auth.ErrUnauthorized)(access.LoginWithTicket(t.Context(), "r", forged))
	}
	keys, err := owner.store.Keys(t.Context(), login.User.ID)
	kit.Require(t, err == nil && len(keys) == 1, "keys %+v, %v", keys, err)
	kit.Try(owner.store.RevokeKey(t.Context(), keys[0].Name, time.Now())).Must(t)
	kit.Err(t, "a login by a link that was asked for with a key since revoked",
		auth.ErrUnauthorized)(access.Check(t.Context(), token))
}

// TestLogin: a login made with a key ends with it.
func TestLogin(t *testing.T) {
	owner := newRig(t)
	access := auth.New(owner.store, discard())
	token, login, err := access.Login(t.Context(), "r", owner.key)
	kit.Require(t, err == nil && login.User.Name == "owner" && login.Key != 0, "login %+v, %v", login, err)
	kit.Try(access.Check(t.Context(), token)).Must(t)
	kit.Try(owner.store.RevokeKey(t.Context(), "test", time.Now())).Must(t)
	kit.Err(t, "after its key was revoked", auth.ErrUnauthorized)(access.Check(t.Context(), token))
	for _, key := range []string{"", "wrong", strings.Repeat("x", 10_000)} {
		kit.Err(t, fmt.Sprintf("with %.10q", key), auth.ErrUnauthorized)(access.Login(t.Context(), "r", key))
	}
}

// untilTooMany makes a request again and again until there were too many, and returns how many there were before: on a
// slow machine more, for time makes up for them.
func (r *rig) untilTooMany(method, path, body string) (n int) {
	r.t.Helper()
	for ; ; n++ {
		a := r.do(method, path, map[string]string{"Content-Type": "application/json"}, strings.NewReader(body))
		switch {
		case a.status != http.StatusTooManyRequests && n < 1000:
			continue
		case a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "":
			r.t.Errorf("after %d requests: %d %v", n, a.status, a.header)
		case method == "POST" && !strings.Contains(string(a.body), `"code":"quota"`):
			r.t.Errorf("after %d requests: %s", n, a.body)
		}
		return n
	}
}

// TestTooManyWrongKeys: 429 with Retry-After, whatever the call; who has a key that was right goes on.
func TestTooManyWrongKeys(t *testing.T) {
	r := newRig(t)
	r.send("GET", "/api/me", "", 200)
	wrong := r.as("ccs_wrong")
	n := wrong.untilTooMany("GET", "/api/me", "")
	kit.Check(t, n >= 10, "%d wrong keys are too many", n)
	wrong.untilTooMany("GET", "/metrics", "")
	r.send("GET", "/api/me", "", 200)
	r.as("").send("GET", "/api/me", "", http.StatusUnauthorized)
}

// TestUserRate: a user's requests beyond the limit are refused for now; another user's are not.
func TestUserRate(t *testing.T) {
	owner := newRig(t, func(s *api.Server) { s.Rates = limit.NewRates(5) })
	ann, bob := owner.person("ann", server.Member), owner.person("bob", server.Member)
	n := ann.untilTooMany("POST", "/api/conversations", piece{lines: objects("a", 0, 1)}.body("s"))
	kit.Check(t, n >= 5, "%d requests are too many, 5 a minute are allowed", n)
	bob.post(piece{lines: objects("b", 0, 1)}.body("s"))
}
