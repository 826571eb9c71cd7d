package markup_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/web/markup"
)

// TestCache: code from the cache is what it would be without, and takes no time.
func TestCache(t *testing.T) {
	var cache markup.Cache
	with := func(patience time.Duration) *markup.Budget {
		h := markup.Colours(1<<20, patience)
		h.Cache = &cache
		return h
	}
	text := "package a // <b>\n" + strings.Repeat("var x = \"y\"\n", 20)
	want := codeOf(highlighter(), text, "go")
	got := codeOf(with(time.Minute), text, "go")
	kit.Check(t, got == want && strings.Contains(string(got), "<span"), "it is kept as something else: %s", got)
	if got := codeOf(with(1), text, "go"); got != want { // too little time to colour it
		t.Errorf("it is not taken from the cache: %s", got)
	}
	got = codeOf(with(1), text, "python")
	kit.Check(t, got != want, "it is taken for another language: %s", got)
	got, want = codeOf(with(time.Minute), text, "python"), codeOf(highlighter(), text, "python")
	kit.Check(t, got == want, "what there was no time for is kept: %s", got)
	cut := text + strings.Repeat("z", 60<<10) // longer than what is coloured
	for range 2 {
		got, want := codeOf(with(time.Minute), cut, "go"), codeOf(highlighter(), cut, "go")
		kit.Check(t, got == want, "what is coloured in part differs: %.300s", got)
	}
}
