package redact

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Token is masked text, and the position of its first byte.
type Token struct {
	Start int    `json:"start"`
	Text  string `json:"text"`
}

// ErrNoToken is returned for what would change more than secrets.
var ErrNoToken = errors.New("not a token at a place of the text")

// Changes returns the tokens, ascending, by which masked differs from a text. It reports false if they differ anywhere
// else: then masked is not the text with secrets masked, by whatever rules and key.
func Changes(text, masked []byte) (list []Token, only bool) {
	if len(text) != len(masked) {
		return nil, false
	}
	var all []place
	after := 0
	for i := differs(text, masked, 0); i < len(masked); i = differs(text, masked, i) {
		if all == nil {
			all = placesOf(masked)
		}
		for len(all) > 0 && all[0].ends(i) {
			all = all[1:]
		}
		at := asterisks(text, masked, i, after)
		if len(all) > 0 && all[0].reaches(i) {
			at = all[0].at(masked, i)
			all = all[1:]
		}
		if at.from == at.to {
			return nil, false
		}
		list = append(list, Token{at.from, string(masked[at.from:at.to])})
		i, after = at.to, at.to
	}
	return list, true
}

// Overlay returns a text with tokens in it, which must be ascending. Everything else stays. ErrNoToken refuses all.
func Overlay(text []byte, list []Token) ([]byte, error) {
	out := bytes.Clone(text)
	if err := CheckTokens(list, int64(len(text))); err != nil {
		return nil, err
	}
	for _, t := range list {
		if strings.Contains(t.Text, "\x00") && bytes.IndexByte(text, 0) < 0 {
			return nil, fmt.Errorf("%w: byte %d: the text is not UTF-16", ErrNoToken, t.Start)
		}
		copy(out[t.Start:], t.Text)
	}
	return out, nil
}

// CheckTokens returns ErrNoToken unless a list holds tokens in ascending order, in a text of a length.
func CheckTokens(list []Token, length int64) error {
	after := int64(0)
	for _, t := range list {
		end := int64(t.Start) + int64(len(t.Text))
		if !isToken(t.Text) || int64(t.Start) < after || end > length {
			return fmt.Errorf("%w: byte %d", ErrNoToken, t.Start)
		}
		after = end
	}
	return nil
}

// isToken reports whether a text is one token, or asterisks for a secret that is too short for one.
func isToken(text string) bool {
	if short, ok := narrowToken(text); ok {
		text = short
	}
	if len(text) > 0 && len(text) <= mostAsterisks && len(bytes.Trim([]byte(text), "*")) == 0 {
		return true
	}
	loc := tokenForm().FindStringIndex(text)
	return loc != nil && loc[0] == 0 && loc[1] == len(text)
}

// SameStrings reports whether the quotes of two JSON texts are at the same positions, so that a token lies in one
// string.
func SameStrings(a, b []byte) bool {
	for i := 0; ; {
		x, y := bytes.IndexByte(a[i:], '"'), bytes.IndexByte(b[i:], '"')
		if x != y {
			return false
		}
		if x < 0 {
			return true
		}
		end := stringEnd(a, i+x+1)
		if end != stringEnd(b, i+x+1) {
			return false
		}
		if end == len(a) {
			return true
		}
		i = end + 1
	}
}
