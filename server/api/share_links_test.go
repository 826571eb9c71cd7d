package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
)

type shareLink struct {
	ID        int64
	URL       string
	SessionID string `json:"session_id"`
	By        string
	Until     time.Time
}

// TestShareLinks: who may make links, who sees and ends them, and that an address is shown only once.
func TestShareLinks(t *testing.T) {
	owner := newRig(t)
	ann, bob, eve := owner.person("ann", server.Member), owner.person("bob", server.Member), owner.person("eve", server.Viewer)
	ann.post(piece{lines: []string{`{}`}}.body("anns"))
	owner.send("POST", "/api/shares", `{"owner":"ann","with":"bob","project":"ph"}`, http.StatusCreated)
	owner.send("POST", "/api/shares", `{"owner":"ann","with":"eve","project":"ph"}`, http.StatusCreated)

	const path = "/api/sessions/anns/share-links"
	link := decode[shareLink](t, ann.send("POST", path, `{}`, http.StatusCreated))
	if in := time.Until(link.Until); link.SessionID != "anns" || link.By != "ann" || in < 6*24*time.Hour || in > 7*24*time.Hour {
		t.Errorf("%+v", link)
	}
	_, secret, found := strings.Cut(link.URL, "/s/")
	if !found || len(secret) < 26 { // of 32 letters each: at least 130 bits
		t.Errorf("address %q", link.URL)
	}
	for _, bad := range []string{"0d", "366d", "-1h", "30s", "week", "d"} {
		ann.send("POST", path, `{"expires":"`+bad+`"}`, http.StatusBadRequest)
	}
	bob.send("POST", path, `{}`, http.StatusForbidden) // it is only shared with him
	eve.send("POST", path, `{}`, http.StatusForbidden)
	ann.send("POST", "/api/sessions/none/share-links", `{}`, http.StatusNotFound)
	boss := decode[shareLink](t, owner.send("POST", path, `{"expires":"12h"}`, http.StatusCreated))

	lists := func(r *rig, query string, want ...int64) {
		t.Helper()
		a := r.get("/api/share-links" + query)
		list := decode[struct{ Links []shareLink }](t, a)
		var got []int64
		for _, l := range list.Links {
			got = append(got, l.ID)
		}
		if a.status != http.StatusOK || len(got) != len(want) || len(got) > 0 && got[0] != want[0] || strings.Contains(string(a.body), secret) {
			t.Errorf("%d %s, want links %v", a.status, a.body, want)
		}
	}
	lists(ann, "", boss.ID, link.ID)
	lists(owner, "?session=anns", boss.ID, link.ID)
	lists(bob, "")
	lists(bob, "?session=anns")
	if a := ann.get("/api/share-links?session=none"); a.status != http.StatusNotFound {
		t.Errorf("%d %s", a.status, a.body)
	}

	access := auth.New(owner.store, discard())
	works := func(secret string, want bool) {
		t.Helper()
		_, err := access.CheckShareLink(t.Context(), "here", secret)
		if want && err != nil || !want && !errors.Is(err, server.ErrNotFound) {
			t.Errorf("%v, want it to work: %v", err, want)
		}
	}
	works(secret, true)
	works(secret[1:], false)
	works(strings.ToLower(secret), false)
	bob.send("DELETE", "/api/share-links/"+fmt.Sprint(link.ID), "", http.StatusNotFound)
	ann.send("DELETE", "/api/share-links/none", "", http.StatusNotFound)
	works(secret, true)
	ann.send("DELETE", "/api/share-links/"+fmt.Sprint(link.ID), "", http.StatusOK)
	ann.send("DELETE", "/api/share-links/"+fmt.Sprint(link.ID), "", http.StatusNotFound)
	works(secret, false)

	again := decode[shareLink](t, ann.send("POST", path, `{"expires":"30d"}`, http.StatusCreated))
	_, secret, _ = strings.Cut(again.URL, "/s/")
	works(secret, true)
	owner.send("DELETE", "/api/keys/ann's%20key", "", http.StatusOK)
	works(secret, false)
}

// TestLoggedPath: no log has the secret of a link.
func TestLoggedPath(t *testing.T) {
	for path, want := range map[string]string{
		"/sessions/a": "/sessions/a", "/s/SECRET": "/s/…/", "/base/s/SECRET/sessions/a": "/base/s/…/sessions/a",
	} {
		if got := auth.LoggedPath(path); got != want {
			t.Errorf("%s is logged as %s", path, got)
		}
	}
}

// TestMost: sessions by what they took, and those that the caller has starred or tagged.
func TestMost(t *testing.T) {
	owner := newRig(t)
	ann, bob := owner.person("ann", server.Member), owner.person("bob", server.Member)
	for i, name := range []string{"small", "large", "slow"} {
		now := time.Now().UTC().Add(-time.Hour)
		ann.post(piece{lines: []string{
			fmt.Sprintf(`{"type":"user","uuid":"u","timestamp":%q,"message":{"role":"user","content":"go"}}`, now.Add(-time.Duration([]int{1, 2, 90}[i])*time.Minute).Format(time.RFC3339)),
			fmt.Sprintf(`{"type":"assistant","uuid":"a","requestId":"r%d","timestamp":%q,"message":{"id":"m%d","role":"assistant","model":"claude-opus-4-5","content":[{"type":"text","text":"ok"}],"usage":{"input_tokens":1,"output_tokens":%d}}}`, i, now.Format(time.RFC3339), i, []int{10, 900, 100}[i]),
		}}.body(name))
	}
	owner.waitDerived()
	ann.send("PUT", "/api/sessions/small/mark", `{"star":true,"tags":["x"]}`, http.StatusOK)
	for query, want := range map[string]string{
		"order=cost": "ann:large ann:slow ann:small", "order=tokens&limit=1": "ann:large", "order=time&limit=1": "ann:slow",
		"order=cost&text=slow": "ann:slow", "starred=1": "ann:small", "tag=x": "ann:small", "tag=y": "", "failed=1": "",
	} {
		if got := ann.sessionsOf(query); got != want {
			t.Errorf("%s lists %q, want %q", query, got, want)
		}
		if got := bob.sessionsOf(query); got != "" {
			t.Errorf("bob's %s lists %q", query, got)
		}
	}
	if a := ann.get("/api/sessions?order=size"); a.status != http.StatusBadRequest {
		t.Errorf("%d %s", a.status, a.body)
	}
}
