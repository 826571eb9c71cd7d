package redact

import (
	"github.com/ccship/ccship/e2e/kit"
	"strings"
	"testing"
)

// TestLinear: four times as much text takes about four times as many steps, of quick checks and of expressions, where
// 16 times would be quadratic, whatever is repeated in it. No other test runs beside it, as it counts for all.
func TestLinear(t *testing.T) {
	m := masker(t)
	defer func() { looked = nil }()
	work := func(text string) (total int) {
		looked = &total
		m.mask([]byte(text), func(s *scratch, b []byte) {
			s.work = 0
			m.inAny(s, b)
			total += s.work
		})
		return total
	}
	names := []string{"", "password", "password=", "password=a1", "x_token: ", "AKIA", "://", "a+", "-p ", "curl ", "login ", "sudo ", "api key ",
		"identified ", "cookie: ", "bearer ", "auth(", "sentry ", "--token ", "<secret>", `{"pass":"`, "password: |\n", "name: db_secret "}
	runs := []string{"=", ":", ",", "},", "=,", " ", "\t", "\n", `"`, "'", "\\", `\n`, `\\n`, `\"`, "(", "[", "{", "<", "-", ".", "+", "%41", "&amp;", "&#", "/", "@",
		"|", "a", "aB", "1a", "_", "a=", "\u200b", `\u0041`, "*", "é", "|\n", "a,", "a "}
	const n, most = 1 << 10, 400 // most: steps a byte
	worst, slowest := 0, ""
	for _, name := range names {
		for _, run := range runs {
			for form, text := range map[string]func(size int) string{
				"a run": func(size int) string { return name + strings.Repeat(run, size/len(run)) },
				"both":  func(size int) string { return strings.Repeat(name+run, size/len(name+run)) },
				"short runs": func(size int) string {
					return strings.Repeat(name+strings.Repeat(run, 60)+" ", 1+size/len(name+run)/60)
				},
			} {
				small, large := text(n), text(4*n)
				first, then := work(small), work(large)
				if limit := 8*first + 1<<14; then > limit {
					t.Errorf("%s of %q and %q: %d steps for %d bytes, %d for %d", form, name, run, first, len(small), then, len(large))
				}
				if each := then / len(large); name == "" && each > 40 {
					t.Errorf("%s of %q: %d steps a byte", form, run, each)
				} else if each > worst {
					worst, slowest = each, form+" of "+name+run
				}
			}
		}
	}
	t.Logf("%d names, %d runs; the worst, %q, takes %d steps a byte", len(names), len(runs), slowest, worst)
	kit.Check(t, worst <= most, "%q takes %d steps a byte", slowest, worst)
}
