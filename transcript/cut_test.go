package transcript

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestOneLineColours: sequences that colour text in a terminal are no text, also when they are cut off or no such.
func TestOneLineColours(t *testing.T) {
	for text, want := range map[string]string{
		"\x1b[1m=== RUN\x1b[0m  Test\n\x1b[31mfails\x1b[0m": "=== RUN Test fails",
		"a\x1b[38;5;12mb": "ab", "a\x1b[": "a", "a\x1b": "a", "a\x1bb": "ab", "a\x1b[1\nb": "ab", "a [1m b": "a [1m b",
		"a\x1b[1\u00e9b": "ab", "\x1b[1m": "",
	} {
		kit.Equal(t, text, OneLine(text, 100), want)
	}
	got := OneLine("\x1b[1mabcdef", 4)
	kit.Check(t, got == "abc…" || got == "abcd…", "cut: %q", got)
}
