package redact

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestAutomaton: an automaton never says that a text does not match an expression that it matches, and is right whenever
// it is sure. What is made for one text is right for the next one.
func TestAutomaton(t *testing.T) {
	expressions := []string{
		`^a+$`, `(?m)^b$`, `\bkey\b`, `\Bkey`, `(?i)ſk|K`, `[^a-z]\z`, `\A(?:é|x)[^é]`, `a.c`, `(?s)a.c`, `(?:ab){2,4}c`,
		`(?:^|[^a-z])pass[\w-]{0,60}=$`, `x{3,40}y`, `(?:a|b)*c{0}$`, `\n\b`,
	}
	for _, r := range masker(t).rules {
		if !r.Token {
			expressions = append(expressions, r.expression().String())
		}
	}
	type pair struct {
		re           *regexp.Regexp
		exact, loose *automaton
	}
	var all []pair
	for _, text := range expressions {
		all = append(all, pair{regexp.MustCompile(text), newAutomaton(text, false), newAutomaton(text, true)})
	}
	parts := []string{ // short ones first
		"a", "b", "c", "é", "ſ", "K", "\xff", "\n", "x", "y", "\u212a", " ", "key", "pass", "password", "api_key", "secret", "token", "=", ":", `"`,
		"'", "Zx81kQ9vLm3pRt7wYb2c", "hunter2hunter2", "/", "-", "--", ">", "<", "name", "value", "mysql", "-p", "://", "@h.de",
	}
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.SliceOfN(rapid.SampledFrom(parts), 1, 5).Draw(t, "few")
		if rapid.Bool().Draw(t, "short") {
			few = parts[:10]
		}
		text := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(few), 0, 12).Draw(t, "parts"), ""))
		for _, p := range all {
			want := p.re.Match(text)
			for _, a := range []*automaton{p.exact, p.loose} {
				if got, sure := a.matches(text); want && !got || got != want && sure {
					t.Fatalf("%s: %t (sure: %t) for %q, want %t", p.re, got, sure, text, want)
				}
			}
		}
	})
}

// TestAutomatonForgets: a text for which ever more states are made keeps few of them.
func TestAutomatonForgets(t *testing.T) {
	const expression = `a[ab]{12}c`
	a, re := newAutomaton(expression, false), regexp.MustCompile(expression)
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.StringOfN(rapid.SampledFrom([]rune("aab")), 20, 60, -1).Draw(t, "text") + rapid.SampledFrom([]string{"c", "", "d"}).Draw(t, "end"))
		if got, _ := a.matches(text); !got && re.Match(text) {
			t.Fatalf("no match in %q", text)
		}
		if len(a.states) > mostStates {
			t.Fatalf("%d states", len(a.states))
		}
	})
}
