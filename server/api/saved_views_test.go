package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
)

type savedView struct{ Name, Page, Query, URL, API string }

// TestSavedViews: views are saved, listed, replaced and removed by who saved them, and the call that each names answers
// what its page shows.
func TestSavedViews(t *testing.T) {
	owner := newRig(t)
	ann := owner.person("ann", server.Member)
	ann.post(piece{lines: []string{`{"type":"user","uuid":"u1","timestamp":"2026-11-01T08:00:00Z","message":{"role":"user","content":"weigh the anchor"}}`}}.body("anchor"))
	ann.post(piece{lines: []string{`{"type":"user","uuid":"u2","timestamp":"2026-11-01T08:00:00Z","message":{"role":"user","content":"count the cargo"}}`}}.body("cargo"))
	owner.waitDerived()
	saved := func(r *rig, query string) map[string]savedView {
		t.Helper()
		out := map[string]savedView{}
		for _, v := range decode[struct{ Views []savedView }](t, r.get("/api/views"+query)).Views {
			out[v.Name] = v
		}
		return out
	}
	path := func(name string) string { return "/api/views/" + url.PathEscape(name) }
	ann.send("PUT", path("Anchors / ü"), `{"query":"?q=anchor&after=1&since=9000d"}`, http.StatusOK)
	ann.send("PUT", path("Words"), `{"page":"search","query":"q=cargo+kind:prompt,answer&kind=gone"}`, http.StatusOK)
	ann.send("PUT", path("Days"), `{"query":"since=2026-10-30&until=2026-10-31&view=costly"}`, http.StatusOK)
	ann.send("PUT", path("Old"), `{"query":"view=expired&machine=-"}`, http.StatusOK)
	for name, body := range map[string]string{"Nothing": `{"query":"by=day"}`, "Page": `{"page":"usage","query":"q=x"}`,
		strings.Repeat("x", 81): `{"query":"q=x"}`, " ": `{"query":"q=x"}`} {
		ann.send("PUT", path(name), body, http.StatusBadRequest)
	}
	views := saved(ann, "?zone=%2B02:00")
	kit.Require(t, len(views) == 4 && strings.HasSuffix(views["Anchors / ü"].URL, "/?q=anchor&since=9000d") &&
		strings.HasSuffix(views["Words"].URL, "/search?q=cargo+kind%3Aprompt%2Canswer"), "%+v", views)
	for name, other := range map[string]string{"anchor": "cargo", "cargo": "anchor"} {
		view := views[map[string]string{"anchor": "Anchors / ü", "cargo": "Words"}[name]].API
		got := string(ann.get(view).body)
		kit.Check(t, strings.Contains(got, `"`+name+`"`) && !strings.Contains(got, other), "%s answers %s", view, got)
	}
	for name, want := range map[string]string{
		"Words": "/api/search?q=cargo+kind%3Aprompt%2Canswer&zone=%2B02%3A00",
		"Days":  "/api/sessions?agents=0&order=cost&since=2026-10-29T22%3A00%3A00Z&until=2026-10-31T22%3A00%3A00Z",
	} {
		kit.Equal(t, name, views[name].API, want)
	}
	if got := views["Old"].API; !strings.HasPrefix(got, "/api/sessions?agents=0&before=20") || !strings.HasSuffix(got, "&machine=&order=recent") {
		t.Errorf("Old is %s", got)
	}
	ann.get(views["Old"].API)
	kit.Equal(t, "another sees", len(saved(owner, "")), 0)
	owner.send("DELETE", path("Words"), "", http.StatusNotFound)
	ann.send("DELETE", path("Anchors / ü"), "", http.StatusOK)
	ann.send("PUT", path("Words"), `{"query":"tag=x"}`, http.StatusOK)
	got := saved(ann, "")
	kit.Check(t, len(got) == 3 && got["Words"].Page == "sessions" && got["Words"].Query == "tag=x", "%+v", got)
}

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
	in := time.Until(link.Until)
	kit.Check(t, link.SessionID == "anns" && link.By == "ann" && in >= 6*24*time.Hour && in <= 7*24*time.Hour, "%+v", link)
	_, secret, found := strings.Cut(link.URL, "/s/")
	kit.Check(t, found && len(secret) >= 26, "address %q", link.URL) // of 32 letters each: at least 130 bits
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
		got := kit.Each(list.Links, func(l shareLink) int64 { return l.ID })
		kit.Check(t, a.status == http.StatusOK && len(got) == len(want) && (len(got) == 0 || got[0] == want[0]) &&
			!strings.Contains(string(a.body), secret), "%d %s, want links %v", a.status, a.body, want)
	}
	lists(ann, "", boss.ID, link.ID)
	lists(owner, "?session=anns", boss.ID, link.ID)
	lists(bob, "")
	lists(bob, "?session=anns")
	ann.send("GET", "/api/share-links?session=none", "", http.StatusNotFound)

	access := auth.New(owner.store, discard())
	works := func(secret string, want bool) {
		t.Helper()
		_, err := access.CheckShareLink(t.Context(), "here", secret)
		kit.Check(t, (!want || err == nil) && (want || errors.Is(err, server.ErrNotFound)), "%v, want it to work: %v", err, want)
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
		kit.Equal(t, path+" is logged as", auth.LoggedPath(path), want)
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
		kit.Equal(t, query+" lists", ann.sessionsOf(query), want)
		kit.Equal(t, fmt.Sprintf("bob's %s lists", query), bob.sessionsOf(query), "")
	}
	ann.send("GET", "/api/sessions?order=size", "", http.StatusBadRequest)
}

// TestRetentionOfASession: a session says what rules did to it and will do, and everything else about one that was
// dropped is still answered as the contract says.
func TestRetentionOfASession(t *testing.T) {
	r := newRig(t)
	for _, id := range []string{"gone", "held", "waits"} {
		r.post(fmt.Sprintf(`{"project_hash":"ph","session_id":%q,"ccship":{"v":1,"machine":"m","host":"h","epoch":"e","project":"p",
"generation":0,"end_line":2},"entries":[{"line_index":0,"type":"user"},{"line_index":1,"type":"user"}]}`, id))
	}
	r.waitDerived()
	type retention struct {
		RetiredAt *time.Time `json:"retired_at"`
		Rule      string
		Lines     int64
		DueAt     *time.Time `json:"due_at"`
		DueRule   string     `json:"due_rule"`
		Kept      string     `json:"kept_because"`
	}
	of := func(id string) retention {
		var a struct{ Retention retention }
		r.check(json.Unmarshal(r.get("/api/sessions/"+id).body, &a))
		return a.Retention
	}
	kit.Equal(t, "without rules", of("gone"), retention{})
	hold := func(id string) {
		_, err := r.store.AddHold(t.Context(), server.Hold{Session: id, By: "owner", Why: "a case", At: time.Now()})
		r.check(err)
	}
	hold("held")
	_, err := r.store.AddRetentionRule(t.Context(), server.RetentionRule{What: server.RetireSessions, Action: server.ActionDrop,
		Age: 240 * time.Hour, By: "owner", At: time.Now()})
	r.check(err)
	kit.Equal(t, "on hold", of("held"), retention{Kept: "hold"})
	got := of("waits")
	kit.Check(t, got.DueAt != nil && time.Until(*got.DueAt) >= 239*time.Hour &&
		got.DueRule == "drop sessions not active for 10 days" && got.Lines == 0, "waiting: %+v", got)
	hold("waits")
	at := time.Now().Add(480 * time.Hour).Truncate(time.Microsecond)
	_, err = r.store.Retire(t.Context(), server.RetireOptions{By: "owner", Now: at})
	r.check(err)
	got = of("gone")
	kit.Check(t, got.RetiredAt != nil && got.RetiredAt.Equal(at) && got.Lines == 2 &&
		got.Rule == "drop sessions not active for 10 days" && got.DueAt == nil && got.Kept == "", "dropped: %+v", got)
	for path, want := range map[string]int{"digest": 200, "entries": 200, "raw": 409} {
		a := r.get("/api/sessions/gone/" + path)
		kit.Check(t, a.status == want && (path != "raw" || strings.Contains(string(a.body), "retired by policy")),
			"%s of a dropped session: %d %s", path, a.status, a.body)
	}
	a := r.get("/api/sessions")
	kit.Check(t, a.status == http.StatusOK && strings.Count(string(a.body), `"session_id":"gone"`) == 1,
		"the list: %d %s", a.status, a.body)
}
