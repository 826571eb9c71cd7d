package web_test

import (
	"math"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/web"
)

func TestEmpty(t *testing.T) {
	s := loggedIn(t)
	mustHave(t, s.get(t, "/"), "No sessions yet")
	for _, path := range []string{"/search", "/search?q=x", "/usage", "/usage?range=all", "/drops"} {
		s.get(t, path)
	}
}

func TestFrame(t *testing.T) {
	s := loggedIn(t)
	s.tour(t)
	for path, want := range map[string]int{"/sessions/none": 404, "/nothing": 404, "/assets/style.css": 200, "/assets/list.html": 404, "/?after=x": 200,
		"/login": 200, "/account": 200, "/assets/..%2fviewer.go": 404, sessionPath(tourID, "", "from", "x", "generation", "y"): 200,
		sessionPath(tourID, "", "generation", "7"): 404, sessionPath(tourID, "", "epoch", "none"): 404, sessionPath(tourID, "/entry/99"): 404,
		sessionPath(tourID, "/entry/x"): 404, sessionPath(tourID, "/image/0/0"): 404, sessionPath(tourID, "/tail"): 400, sessionPath(tourID, "/export"): 400,
		sessionPath(tourID, "", "from", "99999999999999999999"): 200, sessionPath(tourID, "/L/99999"): 404} {
		s.wants(t, want, "GET", path, nil)
	}
	a := s.do(t, "GET", "/", nil, nil)
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "private, no-store", "Referrer-Policy": "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin"} {
		kit.Equal(t, name, a.header.Get(name), want)
	}
	csp := a.header.Get("Content-Security-Policy")
	mustHave(t, csp, "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'")
}

// TestAssets: what a page names is there, is kept for as long as its content is the same, and has little script.
func TestAssets(t *testing.T) {
	s := loggedIn(t)
	n, script := 0, 0
	nodes(t, s.get(t, "/"), func(e *html.Node) {
		path := attr(e, "src")
		if e.Data == "link" {
			path = attr(e, "href")
		}
		if path == "" {
			return
		}
		n++
		a := s.do(t, "GET", path, nil, nil)
		kit.Check(t, a.code == 200 && strings.Contains(a.header.Get("Cache-Control"), "immutable") &&
			a.header.Get("Content-Type") != "", "%s: %d %v", path, a.code, a.header)
		kit.Check(t, !strings.Contains(a.body, "https://") &&
			!strings.Contains(strings.ReplaceAll(a.body, "http://www.w3.org/", ""), "http://") &&
			!strings.Contains(a.body, "@import"), "%s names another site", path)
		if e.Data == "script" {
			script += len(a.body)
		}
	})
	kit.Equal(t, "assets", n, 3)
	kit.Check(t, script != 0 && script <= 16_000, "a page loads %d bytes of script, not at most 16 KB", script)
	a := s.do(t, "GET", "/assets/style.css?v=old", nil, nil)
	kit.Check(t, !strings.Contains(a.header.Get("Cache-Control"), "immutable"), "an asset without its version is kept for ever")
}

func TestTheme(t *testing.T) {
	s := loggedIn(t)
	mustLack(t, s.get(t, "/"), "data-theme")
	a := s.do(t, "POST", "/theme", url.Values{"theme": {"dark"}, "next": {"/usage"}}, nil)
	kit.Equal(t, "it leads to", a.path, "/usage")
	mustHave(t, a.body, `data-theme="dark"`)
	s.do(t, "POST", "/theme", url.Values{"theme": {`"><script>`}, "next": {"//evil.example"}}, nil)
	mustLack(t, s.get(t, "/"), "data-theme")
	kit.Equal(t, "another site sets the look", s.do(t, "POST", "/theme", url.Values{"theme": {"dark"}}, map[string]string{"Sec-Fetch-Site": "cross-site"}).code, 403)
}

// TestBase: below a path of a proxy every address and cookie is below it, too.
func TestBase(t *testing.T) {
	s := newSite(t, func(v *web.Viewer) { v.Base = "/cc" })
	s.tourWithArtifacts(t)
	a := s.login(t, s.key)
	kit.Require(t, a.code == 200 && a.path == "/cc/", "login: %d %s", a.code, a.path)
	for _, path := range []string{"/", sessionPath(tourID, ""), sessionPath(tourID, "/prompts"), sessionPath(tourID, "/entry/3"), sessionPath(tourID, "/compare"), "/search?q=cart", "/usage", "/drops", "/account",
		sessionPath(tourID, "/context"), sessionPath(tourID, "/artifacts"), document(tourID, "docs/plan.md"), sessionPath(tourID, "/document/compare", "path", "docs/plan.md")} {
		nodes(t, s.get(t, path), func(n *html.Node) {
			for _, name := range []string{"href", "src", "action", "data-src", "data-tail", "data-url", "data-artifacts"} {
				v := attr(n, name)
				kit.Check(t, !strings.HasPrefix(v, "/") || strings.HasPrefix(v, "/cc/"), "%s: %s %s=%q", path, n.Data, name, v)
			}
		})
	}
	a = s.do(t, "GET", sessionPath(tourID, "/L/20"), nil, nil)
	kit.Check(t, strings.HasPrefix(a.path, "/cc/sessions/"), "a permalink leads to %s", a.path)
}

// TestGolden holds the pages of a conversation of all shapes. go test ./server/web -update writes them anew.
func TestGolden(t *testing.T) {
	s := loggedIn(t)
	s.tourWithArtifacts(t)
	for name, path := range map[string]string{
		"focused.html": sessionPath(tourID, ""), "everything.html": sessionPath(tourID, "", "mode", "everything"), "prompts.html": sessionPath(tourID, "/prompts"),
		"agent.html": sessionPath(agentID, ""), "compare.html": sessionPath(tourID, "/compare"), "entry.html": sessionPath(tourID, "/entry/14"), "list.html": "/",
		"context.html": sessionPath(tourID, "/context"), "artifacts.html": sessionPath(tourID, "/artifacts"), "document.html": document(tourID, "docs/plan.md"),
		"documentdiff.html": sessionPath(tourID, "/document/compare", "path", "docs/plan.md"), "export.markdown": sessionPath(tourID, "/export", "format", "md"),
	} {
		got := s.get(t, path)
		if strings.HasSuffix(name, ".html") {
			for _, w := range inert(got) {
				t.Errorf("%s: %s", name, w)
			}
		}
		got = timeless(got)
		file := filepath.Join("testdata", "golden", name)
		if *update {
			kit.Must(t, os.WriteFile(file, []byte(got), 0o600))
		}
		want := kit.Try(os.ReadFile(file)).Must(t)
		kit.Check(t, got == string(want), "%s differs from %s; look at it, then -update. It is\n%s", path, file, diffAt(got, string(want)))
	}
}

var (
	moments = regexp.MustCompile(`20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(Z| UTC)`)
	passing = regexp.MustCompile(`>(just now|\d+ (min|h|days|months?) ago)<|\?v=[\w-]+|(?s)<span class="livetag">.*?</span>live</span>|( live"| class="live")`)
)

// dated is what the first page says by the age of sessions.
var dated = regexp.MustCompile(`<h2><bdi>[A-Z][a-z]+( [0-9]+ [A-Z][a-z]+( [0-9]+)?)?</bdi></h2>|<div( class="warn")?><dt>(Claude Code deletes|Older than) .*</dd></div>`)

// timeless takes out of a page what depends on when it was made: all times but those of the conversation.
func timeless(page string) string {
	page = moments.ReplaceAllStringFunc(page, func(m string) string {
		if strings.HasPrefix(m, "2026-11-20") {
			return m
		}
		return "*"
	})
	page = dated.ReplaceAllString(page, "*")
	return passing.ReplaceAllString(page, "*")
}

// diffAt is where two texts begin to differ.
func diffAt(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	cut := func(s string) string { return s[max(0, i-100):min(len(s), i+200)] }
	return "got:  …" + cut(a) + "…\nwant: …" + cut(b) + "…"
}

// themes reads the colours of the style sheet: those of the light look, of the dark one, and of the one that the system
// asks for.
func themes(t *testing.T, css string) map[string]map[string]string {
	t.Helper()
	out := map[string]map[string]string{}
	define := regexp.MustCompile(`--([a-z0-9-]+):\s*(#[0-9a-f]{6})`)
	for name, start := range map[string]string{"light": ":root {", "dark": `:root[data-theme="dark"] {`, "system": `:root:not([data-theme="light"]) {`} {
		_, rest, found := strings.Cut(css, start)
		kit.Require(t, found, "no %s", start)
		block, _, _ := strings.Cut(rest, "}")
		out[name] = map[string]string{}
		for _, m := range define.FindAllStringSubmatch(block, -1) {
			out[name][m[1]] = m[2]
		}
	}
	return out
}

// luminance is that of WCAG 2.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	n := kit.Try(strconv.ParseUint(strings.TrimPrefix(hex, "#"), 16, 32)).Must(t)
	channel := func(c uint64) float64 {
		v := float64(c&255) / 255
		if v <= .04045 {
			return v / 12.92
		}
		return math.Pow((v+.055)/1.055, 2.4)
	}
	return .2126*channel(n>>16) + .7152*channel(n>>8) + .0722*channel(n)
}

func contrast(t *testing.T, a, b string) float64 {
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + .05) / (min(x, y) + .05)
}

// TestContrast: every colour of text has 4.5 against every ground it stands on, in both looks; marks that mean something
// have 3.
func TestContrast(t *testing.T) {
	s := loggedIn(t)
	css := s.get(t, "/assets/style.css")
	looks := themes(t, css)
	for name, c := range looks {
		for _, p := range pairs() {
			kit.Require(t, c[p.fg] != "" && c[p.bg] != "", "%s: %s or %s is not set", name, p.fg, p.bg)
			if got := contrast(t, c[p.fg], c[p.bg]); got < p.least {
				t.Errorf("%s: %s (%s) on %s (%s) has %.2f, want %.1f", name, p.fg, c[p.fg], p.bg, c[p.bg], got, p.least)
			}
		}
	}
	kit.Equal(t, "colours in the light look in the dark one", len(looks["light"]), len(looks["dark"]))
	for k, v := range looks["dark"] {
		kit.Equal(t, k+" when the system is dark", looks["system"][k], v)
	}
	kit.Check(t, !strings.Contains(css, "url("), "the style sheet loads something")
	kit.Has(t, "what has the focus is not seen", css, ":focus-visible { outline: 2px")
}

// colours is a colour, the one it stands on, and the contrast it needs.
type colours struct {
	fg, bg string
	least  float64
}

func pairs() []colours {
	var out []colours
	for _, fg := range []string{"text", "dim", "accent", "good", "bad", "warn"} {
		for _, bg := range []string{"back", "card", "sunk", "tint"} {
			out = append(out, colours{fg, bg, 4.5})
		}
	}
	for _, fg := range []string{"t-k", "t-s", "t-n", "t-c", "t-f", "t-t"} {
		out = append(out, colours{fg, "sunk", 4.5})
	}
	for i := range 16 { // as text, and as the ground of text in that colour
		out = append(out, colours{"a" + strconv.Itoa(i), "sunk", 4.5})
	}
	for _, bg := range []string{"del", "del-mark", "add", "add-mark", "hit"} {
		out = append(out, colours{"text", bg, 4.5})
	}
	for _, bg := range []string{"back", "card"} { // edges of what can be typed in or pressed
		out = append(out, colours{"edge", bg, 3})
	}
	for _, fg := range []string{"text", "dim", "accent"} {
		out = append(out, colours{fg, "code", 4.5})
	}
	for i := range 8 {
		out = append(out, colours{"s" + strconv.Itoa(i), "card", 2})
	}
	return append(out, colours{"dim", "del", 4.5}, colours{"dim", "add", 4.5}, colours{"on-accent", "accent", 4.5},
		colours{"live", "card", 3}, colours{"accent", "line", 3})
}
