package store

import (
	"strings"
	"testing"
)

// TestMatch: whatever a needle is, the index is asked for quoted strings only.
func TestMatch(t *testing.T) {
	for needle, want := range map[string]string{
		`a"b`:    `"a""b"`,
		"ab":     "",
		"abcd":   `"abc" AND "bcd"`,
		"검":      "\"\x01검\x01\"",
		"a검":     "\"a\x01검\" AND \"\x01검\x01\"",
		"aaaaaa": `"aaa"`,
	} {
		if got := match([]string{needle}); got != want {
			t.Errorf("%q: %q, want %q", needle, got, want)
		}
	}
	if n := strings.Count(match([]string{strings.Repeat("abcdefghijklmnopqrstuvwxyz0123456789", 20)[:maxNeedle]}), "AND"); n > maxGrams {
		t.Errorf("%d grams of one needle", n)
	}
}
