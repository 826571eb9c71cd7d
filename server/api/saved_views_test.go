package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ccship/ccship/server"
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
	if len(views) != 4 || !strings.HasSuffix(views["Anchors / ü"].URL, "/?q=anchor&since=9000d") || !strings.HasSuffix(views["Words"].URL, "/search?q=cargo+kind%3Aprompt%2Canswer") {
		t.Fatalf("%+v", views)
	}
	if got := string(ann.get(views["Anchors / ü"].API).body); !strings.Contains(got, `"anchor"`) || strings.Contains(got, "cargo") {
		t.Errorf("%s answers %s", views["Anchors / ü"].API, got)
	}
	if got := string(ann.get(views["Words"].API).body); !strings.Contains(got, `"cargo"`) || strings.Contains(got, "anchor") {
		t.Errorf("%s answers %s", views["Words"].API, got)
	}
	for name, want := range map[string]string{
		"Words": "/api/search?q=cargo+kind%3Aprompt%2Canswer&zone=%2B02%3A00",
		"Days":  "/api/sessions?agents=0&order=cost&since=2026-10-29T22%3A00%3A00Z&until=2026-10-31T22%3A00%3A00Z",
	} {
		if got := views[name].API; got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if got := views["Old"].API; !strings.HasPrefix(got, "/api/sessions?agents=0&before=20") || !strings.HasSuffix(got, "&machine=&order=recent") {
		t.Errorf("Old is %s", got)
	}
	ann.get(views["Old"].API)
	if got := saved(owner, ""); len(got) != 0 {
		t.Errorf("another sees %+v", got)
	}
	owner.send("DELETE", path("Words"), "", http.StatusNotFound)
	ann.send("DELETE", path("Anchors / ü"), "", http.StatusOK)
	ann.send("PUT", path("Words"), `{"query":"tag=x"}`, http.StatusOK)
	if got := saved(ann, ""); len(got) != 3 || got["Words"].Page != "sessions" || got["Words"].Query != "tag=x" {
		t.Errorf("%+v", got)
	}
}
