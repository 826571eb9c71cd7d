//go:build unix

package viewer_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestBasePath follows links behind a reverse proxy that gives the server one path: nothing is asked outside of it.
func TestBasePath(t *testing.T) {
	t.Parallel()
	s := newSite(t, "--base-path", "/ccship", "--trusted-proxies", "127.0.0.1")
	must(t, s.send(s.key, where(taleID, "harbour", false), firstOf(tale(t0)).lines))
	s.settled(t)
	to := kit.Try(url.Parse(strings.TrimSuffix(s.url, "/ccship"))).Must(t)
	mux := http.NewServeMux()
	mux.Handle("/ccship/", &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.SetXForwarded()
	}})
	proxy := httptest.NewServer(mux)
	t.Cleanup(proxy.Close)
	t.Cleanup(proxy.CloseClientConnections) // the stream of changes has no end
	b := newTab(t, proxy.URL+"/ccship")
	b.login(s.key)
	below(b)
	b.clickWait("a.title", "the conversation is open", `document.querySelector("#items")`)
	b.loaded()
	b.wait("the prompts are listed", `document.querySelector(".toc li a")`)
	below(b)
	b.wait("it follows", `!document.querySelector("#following").hidden`)
	b.clickWait(".toc li:not(.moment) a", "the prompt is there", `location.hash`)
	b.clickWait(eval[string](b, "location.hash")+" a.raw", "the record is shown", `document.querySelector(".provenance")`)
	below(b)
	b.open("/usage")
	below(b)
	b.fill("#find", taleWord)
	b.wait("something is found", `document.querySelector(".hit")`)
	below(b)
	b.clickWait(`.theme button[value="dark"]`, "the theme is dark", `document.documentElement.dataset.theme === "dark"`)
	b.open("/")
	b.wait("the theme stays", `document.documentElement.dataset.theme === "dark"`)
	b.clickWait(`form[action$="/logout"] button`, "logged out", formAt)
	for _, r := range b.requests() {
		kit.Check(t, strings.HasPrefix(r, proxy.URL+"/ccship/") || strings.HasPrefix(r, "data:image/") || r == "about:blank",
			"asked for %s", r)
	}
}

// firstOf is the first of two.
func firstOf[A, B any](a A, _ B) A { return a }

// below demands that everything a page leads to or asks for lies below the base path.
func below(b *tab) {
	b.t.Helper()
	for _, fault := range eval[[]string](b, `[...document.querySelectorAll("[href], [src], [action], [data-src], [data-tail]")].flatMap((e) =>
		["href", "src", "action", "data-src", "data-tail"].map((a) => e.getAttribute(a)).filter((v) => v)).filter((v) => {
			const u = new URL(v, location.href);
			return u.origin === location.origin && !u.pathname.startsWith("/ccship/");
		})`) {
		b.t.Errorf("%s leads to %s", eval[string](b, `location.pathname`), fault)
	}
}
