package web_test

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

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
