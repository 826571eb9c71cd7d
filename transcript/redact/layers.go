package redact

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ccship/ccship/transcript"
)

// percent decodes a byte in percent-encoding (RFC 3986, section 2.1) at the start of a text.
func percent(text []byte) (c rune, size int) {
	if len(text) < 3 || text[0] != '%' {
		return 0, 0
	}
	high, low := transcript.HexDigit(text[1]), transcript.HexDigit(text[2])
	if high < 0 || low < 0 {
		return 0, 0
	}
	return high<<4 | low, 3
}

// references are HTML's names of the characters that cannot be written as they are.
var references = []struct {
	name string
	c    rune
}{{"&quot;", '"'}, {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&apos;", '\''}, {"&nbsp;", ' '}, {"&NewLine;", '\n'}}

// reference decodes a character reference of HTML at the start of a text.
func reference(text []byte) (c rune, size int) {
	for _, r := range references {
		if len(text) >= len(r.name) && string(text[:len(r.name)]) == r.name {
			return r.c, len(r.name)
		}
	}
	if len(text) < 4 || text[1] != '#' {
		return 0, 0
	}
	i, base := 2, rune(10)
	if text[2]|0x20 == 'x' {
		i, base = 3, 16
	}
	for start := i; i < len(text) && i < start+5; i++ {
		d := transcript.HexDigit(text[i])
		if text[i] == ';' && i > start {
			return c, i + 1
		}
		if d < 0 || d >= base {
			break
		}
		c = c*base + d
	}
	return 0, 0
}

// forms tells which plus signs of a text stand for spaces. It is asked in the order of their positions, and looks at
// each byte at most twice.
type forms struct {
	next int  // the first escape or space behind the last position, as far as it was looked for
	seen int  // what is before it was looked at
	last int  // the last space, escape or sign of a form before seen
	form bool // it is not a space
}

// isForm reports whether a plus sign, given by its position, stands for a space: a form is encoded around it, as an
// escape in percent-encoding or the beginning of a parameter shows.
func (f *forms) isForm(text []byte, at int) bool {
	end := min(len(text), at+longestForm)
	for f.next = max(f.next, at+1); f.next < end; f.next++ {
		look(1)
		if _, size := percent(text[f.next:]); size > 0 {
			return true
		}
		if isSpace(text[f.next]) {
			break
		}
	}
	for i := max(f.seen, at-longestForm+1); i < at; i++ {
		look(1)
		_, size := percent(text[i:])
		switch c := text[i]; {
		case size > 0, c == '?':
			f.last, f.form = i, true
		case c == '&':
			_, size := reference(text[i:])
			f.last, f.form = i, size == 0
		case isSpace(c):
			f.last, f.form = i, false
		}
	}
	f.seen = at
	return f.form && at-f.last < longestForm
}

// longestForm bounds how far from a plus sign the other escapes of a form are, in bytes.
const longestForm = 96

// appendKnown appends an ASCII character that occurs in texts; any other is no escape.
func appendKnown(dst []byte, c rune, size int) ([]byte, int) {
	if size == 0 || c >= utf8.RuneSelf || !isWritten(byte(c)) {
		return dst, 0
	}
	return append(dst, byte(c)), size
}

// invisible returns the length of a character without width at the start of a text: a soft hyphen, a zero-width space
// or joiner, a mark of direction, or a byte order mark.
func invisible(text []byte) int {
	switch {
	case len(text) >= 2 && text[0] == 0xc2 && text[1] == 0xad:
		return 2
	case len(text) < 3:
		return 0
	case text[0] == 0xe2 && text[1] == 0x80 && (text[2] >= 0x8b && text[2] <= 0x8f || text[2] >= 0xaa && text[2] <= 0xae),
		text[0] == 0xe2 && text[1] == 0x81 && text[2] >= 0xa0 && text[2] <= 0xa9,
		text[0] == 0xef && text[1] == 0xbb && text[2] == 0xbf:
		return 3
	}
	return 0
}

// hasLayer reports whether remove would change a text, whose first line begins at a position.
func hasLayer(text []byte, first int) bool {
	if bytes.IndexByte(text, '\\') >= 0 || bytes.Contains(text, []byte{esc, '['}) || lineMark(text[first:]) > 0 {
		return true
	}
	var buf [utf8.UTFMax]byte
	var f forms
	for i, c := range text {
		if !begins[c] {
			continue
		}
		if _, size := appendEscape(buf[:0], text[i:], true); size > 0 || c == '\n' && lineMark(text[i+1:]) > 0 ||
			c == '+' && f.isForm(text, i) {
			return true
		}
	}
	return false
}

const (
	longestNumber = 7   // digits of a line's number
	longestPath   = 256 // bytes of the path that grep writes before a line
)

// lineMark returns the length of what a tool writes before the text of a line: the number that Claude's Read, cat -n
// and nl write, the path and the number that grep writes, the sign of a patch, or the name of a container.
func lineMark(line []byte) int {
	i := 0
	for i < len(line) && i < 12 && (line[i] == ' ' || line[i] == '\t') {
		i++
	}
	if i == len(line) {
		return 0
	}
	if size := numberMark(line[i:]); size > 0 {
		return i + size
	}
	switch c := line[0]; {
	case i > 0:
		return 0
	case c == '+' || c == '-' || c == '>': // of a patch, or a quotation
		if len(line) > 1 && line[1] != c {
			return 1
		}
		return 0
	case isPathByte(c):
		return pathMark(line)
	}
	return 0
}

// numberMark returns the length of a line's number and what parts it from the line.
func numberMark(line []byte) int {
	n := 0
	for n < len(line) && n <= longestNumber && line[n]-'0' <= 9 {
		n++
	}
	if n == 0 || n > longestNumber || n == len(line) {
		return 0
	}
	switch rest := line[n:]; {
	case rest[0] == '\t', rest[0] == ':', rest[0] == '-':
		return n + 1
	case bytes.HasPrefix(rest, []byte("→")):
		return n + len("→")
	case bytes.HasPrefix(bytes.TrimLeft(rest[:min(len(rest), 8)], " "), []byte("|")):
		return n + bytes.IndexByte(rest, '|') + 1
	case bytes.HasPrefix(bytes.TrimLeft(rest[:min(len(rest), 8)], " "), []byte("│")):
		return n + bytes.Index(rest, []byte("│")) + len("│")
	}
	return 0
}

func isPathByte(c byte) bool {
	return isAlnum(c) || c == '/' || c == '.' || c == '_' || c == '-' || c == '~' || c == '@' || c == '+'
}

// pathMark returns the length of a path before a line, with a number or without one.
func pathMark(line []byte) int {
	n, named := 0, false
	for n < len(line) && n < longestPath && isPathByte(line[n]) {
		named = named || line[n] == '/' || line[n] == '.'
		if line[n] == '-' && named { // grep's context: path-12-text
			if size := numberMark(line[n+1:]); size > 0 && line[n+size] == '-' {
				return n + 1 + size
			}
		}
		n++
	}
	switch {
	case n == len(line):
		return 0
	case line[n] == ':' && named:
		n++
		return n + max(0, numberMark(line[n:]))
	case line[n] == ' ': // a container of docker compose
		bar := bytes.TrimLeft(line[n:min(len(line), n+24)], " ")
		if bytes.HasPrefix(bar, []byte("| ")) {
			return n + bytes.IndexByte(line[n:], '|') + 2
		}
	}
	return 0
}

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
