//go:build unix

package viewer_test

import (
	_ "embed"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// auditor is what looks at pages from within.
//
//go:embed testdata/audit.js
var auditor string

// TestAccessible: on every page, in both looks, each control has a name, each picture a text, and text stands out.
func TestAccessible(t *testing.T) {
	b, s := reader(t)
	b.allow("404")
	check := func(name, path string) {
		b.open(path)
		unfold(b)
		for _, scheme := range []string{"light", "dark"} {
			b.colorScheme(scheme)
			for _, fault := range eval[[]string](b, `audit.all()`) {
				t.Errorf("%s, %s: %s", name, scheme, fault)
			}
		}
	}
	for name, path := range pages() {
		check(name, path)
	}
	stranger := newTab(t, s.url)
	stranger.allow("401")
	b = stranger
	check("login", "/login")
	check("refused", "/account")
	check("ticket", "/login?ticket=x")
}

// TestAuditSees proves that the audit can fail.
func TestAuditSees(t *testing.T) {
	t.Parallel()
	whole := `<html lang="en"><head><title>x</title><link rel="icon" href="data:image/gif;base64,R0lGODlhAQABAAAAACw="></head><body><header><nav aria-label="Main"><a href="/">x</a></nav></header><main><h1>x</h1>%s</main></body>`
	for fault, page := range map[string]string{
		"":                        fmt.Sprintf(whole, `<p>x <img alt="" src="data:image/gif;base64,R0lGODlhAQABAAAAACw="><label>a <input></label><button aria-label="b"></button>`),
		"no name: a":              fmt.Sprintf(whole, `<a href="/"></a>`),
		"no name: button":         fmt.Sprintf(whole, `<button><svg></svg></button>`),
		"no name: input":          fmt.Sprintf(whole, `<input placeholder="x">`),
		"no name: summary":        fmt.Sprintf(whole, `<details><summary></summary></details>`),
		"2 × h1":                  fmt.Sprintf(whole, `<h1>y</h1>`),
		"h1 and then h3":          fmt.Sprintf(whole, `<h3>y</h3>`),
		"no alt":                  fmt.Sprintf(whole, `<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">`),
		"id twice: a":             fmt.Sprintf(whole, `<p id="a"><p id="a">`),
		"for names b":             fmt.Sprintf(whole, `<label for="b">x</label>`),
		"a drawing that is":       fmt.Sprintf(whole, `<svg></svg>`),
		"a nav without a name":    fmt.Sprintf(whole, `<nav>x</nav>`),
		"0 × main":                `<html lang="en"><title>x</title><header></header><h1>x</h1>`,
		"no language":             `<title>x</title><header></header><main><h1>x</h1></main>`,
		"contrast 2.32":           fmt.Sprintf(whole, `<p style="color:#aaa">x</p>`),
		"contrast 1.":             fmt.Sprintf(whole, `<p style="opacity:.2">x</p>`),
		"contrast 2.20":           fmt.Sprintf(whole, `<p style="background:#555;color:#111"><span style="color:#bbb8">x</span></p>`),
		"an edge of 1.":           fmt.Sprintf(whole, `<p style="background:#fff"><code style="background:#eee">x</code></p>`),
		"hidden, but can have":    fmt.Sprintf(whole, `<div aria-hidden="true"><button>x</button></div>`),
		"tabindex 3":              fmt.Sprintf(whole, `<p tabindex="3">x</p>`),
		"th without scope":        fmt.Sprintf(whole, `<table><tr><th>x</table>`),
		"the focus is not seen":   fmt.Sprintf(whole, `<style>:focus { outline: none }</style><button>x</button>`),
		"can't have the focus: p": fmt.Sprintf(whole, `<p tabindex="0" id="p">x</p><script>p.focus = () => {}</script>`),
	} {
		t.Run(fault, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<!doctype html>"+page) }))
			defer server.Close()
			b := newTab(t, server.URL)
			b.open("/")
			got := eval[[]string](b, `audit.all()`)
			if strings.Contains(fault, "focus") {
				got = eval[[]string](b, `audit.order()`)
			}
			kit.Check(t, (fault != "" || len(got) == 0) && strings.Contains(strings.Join(got, "\n"), fault),
				"the audit says %q", got)
		})
	}
}
