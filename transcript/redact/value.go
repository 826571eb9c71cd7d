package redact

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// chars reads characters of a text through their escapes, of one layer, without decoding the text.
type chars struct {
	b      []byte
	at     int
	deeper bool // an escape stands for what begins another one
}

// looked counts the bytes that quick checks look at, for a test; nil: nobody counts.
var looked *int

func look(bytes int) {
	if looked != nil {
		*looked += bytes
	}
}

// peek returns the next character and its length in the text; 0 at the end, and for what stands for nothing.
func (c *chars) peek() (r byte, size int) {
	look(1)
	if c.at >= len(c.b) {
		return 0, 0
	}
	if begins[c.b[c.at]] {
		var buf [utf8.UTFMax]byte
		if d, size := appendEscape(buf[:0], c.b[c.at:], true); size > 0 {
			if len(d) == 0 {
				return 0, size
			}
			next := c.b[min(len(c.b)-1, c.at+size)]
			c.deeper = c.deeper || mayHide(d[0]) && (d[0] != '\\' || next == 'u')
			return d[0], size
		}
	}
	return c.b[c.at], 1
}

// skip passes characters of a set, at most some, and those that stand for nothing.
func (c *chars) skip(set string, most int) (n int) {
	for ; n < most; n++ {
		r, size := c.peek()
		if size == 0 || r != 0 && strings.IndexByte(set, r) < 0 {
			break
		}
		c.at += size
	}
	return n
}

// word passes the characters of a name.
func (c *chars) word() (n int) {
	for ; n < longestRest; n++ {
		r, size := c.peek()
		if size == 0 || r != 0 && !isTokenByte(r) && r != '.' && r < utf8.RuneSelf {
			break
		}
		c.at += size
	}
	return n
}

// escaped reports whether the next character is a backslash, which begins an escape of a deeper layer.
func (c *chars) escaped() bool {
	r, _ := c.peek()
	return r == '\\'
}

// closers may be between a name and a sign, besides a type.
const (
	closers = "\"')[]`/ \t\\"
	// widest bounds how far the signs of settings that stand below each other are from their names, and the values
	// from their signs, in bytes.
	widest = 48
	cdata  = "<![CDATA["
	inner  = "<value>"
)

// ahead is what follows a name. Rules that look at one position share it.
type ahead struct {
	known     bool
	at        int
	sign      byte // of an assignment; 0: there is none
	quoted    bool // the value
	promising bool // it may be a secret
	code      bool // it is code, unless it ends before a space
	plural    bool // the name is that of a number of tokens
	unsure    bool // more than one layer of escapes hides it

	place       int    // what was asked about it
	asked, held uint64 // by near
}

// holds is near.holds, which it asks once for the rules that look at one position.
func (a *ahead) holds(n near, b []byte, at int) bool {
	if a.place != at {
		a.place, a.asked, a.held = at, 0, 0
	}
	if bit := uint64(1) << n; a.asked&bit == 0 {
		a.asked |= bit
		if n.holds(b, at, a) {
			a.held |= bit
		}
	}
	return a.held>>n&1 != 0
}

// look parses what follows a name in a text, given by a position in it.
func (a *ahead) look(b []byte, at int) *ahead {
	if a.known && a.at == at {
		return a
	}
	*a = ahead{known: true, at: at, place: a.place, asked: a.asked, held: a.held}
	end := at
	for end < min(len(b), at+longestRest) && isTokenByte(b[end]) {
		end++
	}
	if a.plural = bytes.HasSuffix(b[at:end], []byte("okens")); a.plural {
		return a
	}
	c := chars{b: b, at: at}
	c.word()
	n := c.skip(closers, widest)
	sign, _ := c.peek()
	if n > 0 && (isAlnum(sign) || sign == '.') { // a type, a length, an attribute, or a method
		c.word()
		c.skip(closers, 4)
		sign, _ = c.peek()
	}
	var buf [64]byte
	value := buf[:0]
	a.sign, a.quoted, value = c.assigned(sign, value)
	if a.sign == ':' && len(value) > 0 && !a.quoted && !isPromising(value) { // perhaps a type
		c.skip(" \t", 2)
		if next, _ := c.peek(); next == '=' {
			a.sign, a.quoted, value = c.assigned(next, buf[:0])
		}
	}
	a.promising, a.unsure = c.deeper || isPromising(value), c.deeper
	a.code = a.promising && isCode(value)
	return a
}

// assigned parses a value behind a sign, as far as there is space for it.
func (c *chars) assigned(sign byte, value []byte) (byte, bool, []byte) {
	if sign == 0 || strings.IndexByte("=:>,|?(", sign) < 0 {
		return 0, false, value
	}
	c.skip("=:>,|?(", 4)
	for c.skip(" \t\r\n\\([", widest) > 0 && c.at < len(c.b) && c.b[c.at-1] == '\\' &&
		strings.IndexByte("nrt", c.b[c.at]) >= 0 {
		c.at++ // of a line's end or a tab of a deeper layer
	}
	if bytes.HasPrefix(c.b[min(len(c.b), c.at):], []byte(cdata)) {
		c.at += len(cdata)
	} else if hasFold(c.b[min(len(c.b), c.at):], inner) {
		c.at += len(inner)
	}
	c.block()
	rest := c.b[min(len(c.b), c.at):]
	if len(rest) > 1 && strings.IndexByte("@NbrfuE", rest[0]) >= 0 && strings.IndexByte("\"'`\\", rest[1]) >= 0 {
		c.at++ // of a kind of string
	}
	for _, name := range argumentNames {
		if hasFold(rest, name) {
			c.at += len(name)
			c.skip(" ", 1)
			break
		}
	}
	quote, _ := c.peek()
	quoted := isQuote(quote)
	value = c.value(value, "<")
	return sign, quoted, value
}

// argumentNames may be before a value that a name and a comma are before.
var argumentNames = []string{"default=", "with:", "value=", "<%="}

// block notes that a value of several lines begins behind a tag, a sign of YAML or that of a shell: what tools write
// before each line may be between.
func (c *chars) block() {
	t := *c
	if t.skip("!", 2) > 0 {
		t.word()
		if t.skip(" \t", widest) > 0 {
			*c = t // the tag is no part of the value
		}
	}
	if t.skip("|>", 1) == 0 && t.skip("<", 2) < 2 {
		return
	}
	t.skip("+-~\"'123456789", 2)
	t.word()
	t.skip(" \t\r\"'", widest)
	switch next, _ := t.peek(); next {
	case '\\':
		c.deeper = true
	case '\n':
		c.deeper = c.deeper || t.promises()
	}
}

// promises reports whether one of the next words may be a secret, or is not seen.
func (c *chars) promises() bool {
	for range 3 {
		c.skip(" \t\r\n+", widest)
		var buf [64]byte
		if word := c.value(buf[:0], "<"); len(word) == 0 || c.deeper || isPromising(word) {
			return true
		}
	}
	return false
}

// value reads a value as far as there is space for it: in quotes, or up to a quote or one of some ends.
func (c *chars) value(value []byte, ends string) []byte {
	quote, size := c.peek()
	quoted := isQuote(quote)
	if quoted {
		c.at += size
		if rest := c.b[min(len(c.b), c.at):]; len(rest) > 1 && rest[0] == quote && rest[1] == quote { // three of them
			c.at += 2
		} else if len(rest) > 1 && rest[0] == quote && isAlnum(rest[1]) { // quotes within quotes
			c.at++
		}
	}
	for len(value) < cap(value) {
		r, size := c.peek()
		if size == 0 || isSpace(r) || quoted && r == quote || !quoted && (isQuote(r) || strings.IndexByte(ends, r) >= 0) {
			break
		}
		if c.at += size; r != 0 {
			value = append(value, r)
		}
	}
	return value
}

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// isPromising reports whether a value may be a secret: it is neither short, nor a number, nor words. It is cheaper than
// ordinary, and never stricter.
func isPromising(value []byte) bool {
	if len(value) < leastValue {
		return false
	}
	letters, digits, others := 0, 0, 0
	for _, c := range value {
		switch {
		case isAlnum(c) && c > '9':
			letters++
		case isAlnum(c):
			digits++
		case strings.IndexByte("_./:,;&*(){}[]<>= -", c) < 0:
			others++
		}
	}
	return letters > 0 && (digits > 0 || others > 0 || !isPronounced(value) || !wordsForm().Match(value))
}

// isCode reports whether a value that reaches to a space begins as a variable of a shell, a call, an element or the
// name of a test: codeForm and templateForm say the same.
func isCode(value []byte) bool {
	if len(value) < leastValue {
		return false
	}
	n := 0
	for n < len(value) && (isTokenByte(value[n]) && value[n] != '-' || n > 0 && value[n] == '.') {
		n++
	}
	switch {
	case value[0] == '$':
		return isTokenByte(value[1]) && value[1] > '9'
	case n == 0 || value[0] <= '9' || n == len(value):
		return false
	}
	return strings.IndexByte("([{)", value[n]) >= 0 || bytes.HasPrefix(value, []byte("Test")) && value[4]-'A' < 26
}

// hasValue reports whether a name is followed by a member or an element that is named value, default, string or
// data.
func hasValue(b []byte, at int) bool {
	c := chars{b: b, at: at}
	c.word()
	for i, first := range b[c.at:min(len(b), c.at+longestBetween)] {
		rest := b[c.at+i:]
		switch first | 0x20 {
		case 'v':
			if !hasFold(rest, "value") {
				continue
			}
		case 'd':
			if !hasFold(rest, "default") && !hasFold(rest, "data") {
				continue
			}
		case 's':
			if !hasFold(rest, "string") {
				continue
			}
		default:
			continue
		}
		member := chars{b: b, at: c.at + i}
		member.word()
		member.skip("\"' \t\r\n", 32)
		if sign, _ := member.peek(); sign == ':' || sign == '=' || sign == '>' || sign == '\\' || member.deeper || c.deeper {
			return true
		}
	}
	return false
}

// longestBetween bounds how far from a name the member with its value begins, in bytes.
const longestBetween = 64

func hasFold(b []byte, word string) bool {
	return len(b) >= len(word) && bytes.EqualFold(b[:len(word)], []byte(word))
}

// hasVendorKey reports whether a word begins with a vendor's name, and a key follows behind a sign, with a few other
// words between.
func hasVendorKey(b []byte, at int) bool {
	if at > 0 && b[at-1]|0x20 >= 'a' && b[at-1]|0x20 <= 'z' && !startsWord(b, at) {
		return false
	}
	c := chars{b: b, at: at}
	sign := byte(0)
	for range 5 {
		c.word()
		c.skip(closers, widest)
		if sign, _ = c.peek(); !isAlnum(sign) {
			break
		}
	}
	if sign == 0 || strings.IndexByte("=:,?", sign) < 0 {
		return c.deeper || c.escaped()
	}
	c.skip("=:,?> \t\"'`\\", widest)
	for range leastVendorKey {
		r, size := c.peek()
		if size == 0 || r != 0 && !isTokenByte(r) && strings.IndexByte("+/=.:", r) < 0 {
			return c.deeper || c.escaped()
		}
		c.at += size
	}
	return true
}

// leastVendorKey is the length of the shortest key that the name of a vendor tells, in bytes.
const leastVendorKey = 17
