package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ccship/ccship/server"
)

// shadowed is a server on which bob sent, after ann, what has the names of ann's: session, machine, agent, document,
// checkpoint.
func shadowed(t *testing.T) (owner, ann, bob *rig) {
	t.Helper()
	owner = newRig(t)
	ann, bob = owner.person("ann", server.Member), owner.person("bob", server.Member)
	for _, r := range []struct {
		*rig
		name string
	}{{ann, "ann"}, {bob, "bob"}} {
		line := func(n string) string {
			return `{"type":"user","uuid":"` + r.name + n + `","timestamp":"2026-11-21T08:00:0` + n +
				`Z","message":{"role":"user","content":"written by ` + r.name + `, a wombat"}}`
		}
		r.post(piece{lines: []string{line("0"), line("1")}}.body("s"))
		agent := piece{lines: []string{line("2")}}.body("s/agent-1")
		r.post(strings.Replace(agent, `"parent_session_id":null`, `"parent_session_id":"s"`, 1))
		r.post(piece{gen: 1, first: 0, lines: []string{line("3")}}.body("s")) // a rewrite that drops a line
		r.putDocument("s", linked("plan.md", 1, "plan of "+r.name))
		r.send("POST", "/api/checkpoints", artifact("s", `"checkpoints":[`+
			strings.Replace(aCheckpoint, "half", "half of "+r.name, 1)+`]`), 200)
		r.sendBlob("s", "tool-results/t.txt", "result of "+r.name)
	}
	owner.waitDerived()
	return owner, ann, bob
}

// sessionReads are all calls that name one session.
var sessionReads = []string{
	"/api/sessions/s", "/api/sessions/s/entries", "/api/sessions/s/raw", "/api/sessions/s/digest",
	"/api/sessions/s/digest?epochs=all", "/api/sessions/s/digest?from=0", "/api/sessions/s/export",
	"/api/sessions/s/export?format=json", "/api/sessions/s/checkpoints", "/api/sessions/s/documents",
	"/api/sessions/s/documents/plan.md", "/api/sessions/s/documents/plan.md/versions", "/api/sessions/s/blobs",
	"/api/sessions/s/link-requests", "/api/checkpoints/cp-1", "/api/checkpoints?session=s",
	"/api/usage?by=user&session=s", "/api/drops?session=s", "/api/sessions?parent=s",
}

func withQuery(path, q string) string {
	if strings.Contains(path, "?") {
		return path + "&" + q
	}
	return path + "?" + q
}

// TestShadowing: bob cannot put his session in place of ann's by giving it the same names. A reader who sees both has
// to say whose is meant.
func TestShadowing(t *testing.T) {
	owner, ann, bob := shadowed(t)
	for _, path := range sessionReads {
		for _, q := range []string{"", "machine=m1"} {
			p := path
			if q != "" && !strings.Contains(path, "/checkpoints") {
				p = withQuery(path, q)
			}
			a := owner.get(p)
			for _, want := range []string{`"code":"ambiguous"`, `"user":"ann"`, `"user":"bob"`, `"choices"`} {
				if a.status != http.StatusConflict || !strings.Contains(string(a.body), want) {
					t.Errorf("%s: %d %s, want 409 with %s", p, a.status, a.body, want)
				}
			}
		}
		for name, r := range map[string]*rig{"ann": ann, "bob": bob} {
			own, named, me := r.get(path), owner.get(withQuery(path, "user="+name)), r.get(withQuery(path, "user=@me"))
			if own.status != 200 || string(own.body) != string(named.body) || string(own.body) != string(me.body) {
				t.Errorf("%s of %s: own %d %s\nnamed %d %s\n@me %d %s", path, name, own.status, own.body, named.status, named.body,
					me.status, me.body)
			}
			other := map[string]string{"ann": "bob", "bob": "ann"}[name]
			if strings.Contains(string(own.body), " "+other) || strings.Contains(string(own.body), `"`+other+`"`) {
				t.Errorf("%s of %s has something of %s: %s", path, name, other, own.body)
			}
			a := r.get(withQuery(path, "user="+other))
			if strings.Contains(string(a.body), other) && a.status == 200 {
				t.Errorf("%s shows %s what is %s's: %s", path, name, other, a.body)
			}
		}
	}
}

// TestShadowedChanges: a forget, a link request and digests by a list mean one user's session.
func TestShadowedChanges(t *testing.T) {
	owner, ann, bob := shadowed(t)
	a := owner.send("POST", "/api/digests", `{"sessions":[{"session_id":"s","machine":"m1"},{"session_id":"s","user":"ann"},`+
		`{"session_id":"s","user":"@me"}]}`, 200)
	if n := strings.Count(string(a.body), `"ambiguous"`); n != 1 || strings.Count(string(a.body), `"not_found"`) != 1 {
		t.Errorf("digests: %s", a.body)
	}
	owner.send("POST", "/api/sessions/s/documents", `{"path":"x.md"}`, http.StatusConflict)
	owner.send("POST", "/api/sessions/s/documents?user=ann", `{"path":"x.md"}`, http.StatusAccepted)
	for name, want := range map[string]int{"ann": 1, "bob": 0} {
		a := owner.get("/api/sessions/s/link-requests?user=" + name)
		if n := strings.Count(string(a.body), `"path"`); n != want {
			t.Errorf("link requests of %s: %s", name, a.body)
		}
	}
	owner.send("DELETE", "/api/sessions/s", "", http.StatusConflict)
	owner.send("DELETE", "/api/sessions/s?user=nobody", "", http.StatusNotFound)
	owner.send("DELETE", "/api/sessions/s?user=@me", "", http.StatusNotFound)
	bob.send("DELETE", "/api/sessions/s?user=ann", "", http.StatusNotFound)
	gone := owner.send("DELETE", "/api/sessions/s?user="+url.QueryEscape("bob"), "", 200)
	if !strings.Contains(string(gone.body), `"user":"bob"`) {
		t.Errorf("forgotten: %s", gone.body)
	}
	if got := ann.sessionsOf(""); got != "ann:s ann:s/agent-1" {
		t.Errorf("ann has %q", got)
	}
	if got := bob.sessionsOf(""); got != "" {
		t.Errorf("bob has %q", got)
	}
	if a := owner.get("/api/sessions/s/raw"); a.status != 200 || !strings.Contains(string(a.body), "by ann") {
		t.Errorf("the only one left: %d %s", a.status, a.body)
	}
	bob.post(piece{lines: objects("a", 0, 1)}.body("t")) // others of his are stored
	owner.send("DELETE", "/api/sessions/s", "", 200)     // there is only one
}

// TestSharedShadow: of two who share a project with eve, neither replaces the other's session.
func TestSharedShadow(t *testing.T) {
	_, ann, bob := shadowed(t)
	eve := ann.person("eve", server.Viewer)
	for _, r := range []*rig{ann, bob} {
		r.send("POST", "/api/shares", `{"with":"eve","project":"ph","documents":true}`, http.StatusCreated)
	}
	for _, path := range sessionReads {
		if a := eve.get(path); a.status != http.StatusConflict {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	ann.send("DELETE", "/api/shares", `{"with":"eve","project":"ph"}`, 200)
	if a := eve.get("/api/sessions/s/raw"); a.status != 200 || !strings.Contains(string(a.body), "by bob") {
		t.Errorf("only bob shares: %d %s", a.status, a.body)
	}
}
