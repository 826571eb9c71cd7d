package redact

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestChanges finds the tokens of any key, and puts them back in place; nothing else passes as masked.
func TestChanges(t *testing.T) {
	m := parallel(t)
	text := []byte(`{"a":"use ` + secret + ` and \"` + secret + `\"","b":"export DB_PASSWORD=ab12cd now ***"}`)
	masked, ranges := m.Object(text)
	list, only := Changes(text, masked)
	kit.Require(t, only && len(list) == 3 && len(ranges) == 3, "%v %v of %v in %s", only, list, ranges, masked)
	again, err := Overlay(text, list)
	kit.Check(t, err == nil && bytes.Equal(again, masked), "%s, %v", again, err)
	list, only = Changes(text, text)
	kit.Check(t, only && list == nil, "no difference: %v", list)
	for name, other := range map[string][]byte{
		"another word":   bytes.Replace(masked, []byte("use"), []byte("USE"), 1),
		"shorter":        masked[:len(masked)-1],
		"many asterisks": bytes.Replace(text, []byte(secret), bytes.Repeat([]byte("*"), len(secret)), 1),
		"an open token":  bytes.Replace(masked, []byte("] and"), []byte("x and"), 1),
	} {
		list, only := Changes(text, other)
		kit.Check(t, !only, "%s is masked text: %v", name, list)
	}
}

// TestOverlayRefuses: what is not a token, lies outside, or overlaps changes nothing.
func TestOverlayRefuses(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("words ", 20))
	token := "[a:" + strings.Repeat("b", 10) + "]"
	for name, list := range map[string][]Token{
		"a word":          {{0, "other"}},
		"nothing":         {{3, ""}},
		"token and more":  {{0, token + " x"}},
		"before":          {{-1, token}},
		"behind":          {{len(text) - 3, token}},
		"far behind":      {{1 << 40, token}},
		"overlapping":     {{0, token}, {5, token}},
		"wrong order":     {{50, token}, {0, token}},
		"eleven *":        {{0, strings.Repeat("*", mostAsterisks+1)}},
		"quote in a rule": {{0, `["a":bbbbbbbbbb]`}},
	} {
		out, err := Overlay(text, list)
		kit.Check(t, errors.Is(err, ErrNoToken), "%s: %s, %v", name, out, err)
	}
	if out, err := Overlay(text, []Token{{0, token}, {30, "****"}}); err != nil || len(out) != len(text) ||
		slices.Equal(out, text) {
		t.Errorf("%s, %v", out, err)
	}
}

// TestSameStrings: a token may not swallow the end of a string.
func TestSameStrings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{"a":"b\"c","d":"e"}`, `{"a":"*****","d":"e"}`, false},
		{`{"a":"bcccc","d":"e"}`, `{"a":"*****","d":"e"}`, true},
		{`{"a":"b\\","d":"e"}`, `{"a":"***","d":"e"}`, true},
		{`{"a":"b","d":"e"}`, `{"a":"***********"}`, false},
		{`{}`, `{}`, true},
	} {
		got := SameStrings([]byte(c.a), []byte(c.b))
		kit.Check(t, got == c.same, "%s and %s: %v", c.a, c.b, got)
	}
}
