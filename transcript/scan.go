package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The skip functions validate one piece of JSON at b[i] and return the index behind it, or ^i of the first invalid byte
// (^len(b) if the text ends too early). None of them recurses.

func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// skipKey skips a member's name and its colon and returns the index of the value.
func skipKey(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return ^i
	}
	if i = skipString(b, i+1); i < 0 {
		return i
	}
	if i = skipSpace(b, i); i == len(b) || b[i] != ':' {
		return ^i
	}
	return skipSpace(b, i+1)
}

// nesting is the stack of open objects and arrays, one bit each.
type nesting struct {
	depth int
	word  uint64   // the innermost, up to 64; 1 is an object
	outer []uint64 // full words around them
}

func (n *nesting) push(object bool) bool {
	// the enclosing object is the first level
	if n.depth == MaxDepth-1 {
		return false
	}
	if n.depth > 0 && n.depth%64 == 0 {
		n.outer = append(n.outer, n.word)
	}
	n.depth++
	n.word <<= 1
	if object {
		n.word |= 1
	}
	return true
}

func (n *nesting) pop() {
	n.depth--
	n.word >>= 1
	if n.depth > 0 && n.depth%64 == 0 {
		n.word = n.outer[len(n.outer)-1]
		n.outer = n.outer[:len(n.outer)-1]
	}
}

func (n *nesting) inObject() bool { return n.word&1 == 1 }

// skipValue skips the value of one of a record's members.
func skipValue(b []byte, i int) int {
	var open nesting
	for {
		if i >= len(b) {
			return ^len(b)
		}
		switch c := b[i]; c {
		case '"':
			i = skipString(b, i+1)
		case '{', '[':
			if !open.push(c == '{') {
				return ^i
			}
			i = skipSpace(b, i+1)
			if i < len(b) && b[i] == c+2 { // '}' and ']' are two code points after '{' and '['
				break
			}
			if c == '{' {
				i = skipKey(b, i)
			}
			if i < 0 {
				return i
			}
			continue
		default:
			i = skipScalar(b, i)
		}
		if i < 0 {
			return i
		}
		if i = skipEnds(b, i, &open); i < 0 || open.depth == 0 {
			return i
		}
	}
}

// skipEnds skips what may follow a value: closing brackets, then the comma and name before the next value.
func skipEnds(b []byte, i int, open *nesting) int {
	for open.depth > 0 {
		i = skipSpace(b, i)
		if i == len(b) {
			return ^i
		}
		object := open.inObject()
		switch c := b[i]; {
		case c == ',':
			i = skipSpace(b, i+1)
			if object {
				return skipKey(b, i)
			}
			return i
		case c == '}' && object, c == ']' && !object:
			open.pop()
			i++
		default:
			return ^i
		}
	}
	return i
}

// skipScalar skips a number, true, false or null.
func skipScalar(b []byte, i int) int {
	switch b[i] {
	case 't':
		return skipWord(b, i, "true")
	case 'f':
		return skipWord(b, i, "false")
	case 'n':
		return skipWord(b, i, "null")
	}
	return skipNumber(b, i)
}

func skipWord(b []byte, i int, word string) int {
	for k := range len(word) {
		if i+k == len(b) || b[i+k] != word[k] {
			return ^(i + k)
		}
	}
	return i + len(word)
}

func skipNumber(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if i = skipDigits(b, i); i < 0 {
		return i
	}
	if i < len(b) && b[i] == '.' {
		if i = skipDigits(b, i+1); i < 0 {
			return i
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		i = skipDigits(b, i)
	}
	return i
}

// skipDigits skips at least one digit.
func skipDigits(b []byte, i int) int {
	start := i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	if i == start {
		return ^i
	}
	return i
}

// special marks, in the high bit of its byte, each of the eight bytes of x that is a control character, a quote, a
// backslash or not ASCII. The lowest mark is exact; higher ones may be false, because the subtraction borrows upwards.
func special(x uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	control := x - ones*0x20
	quote := x ^ ones*'"' - ones
	slash := x ^ ones*'\\' - ones
	return (control | quote | slash | x) & highs
}

// skipString skips the rest of a string, from behind its opening quote to behind its closing one.
func skipString(b []byte, i int) int {
	for {
		for i+8 <= len(b) {
			m := special(binary.LittleEndian.Uint64(b[i:]))
			if m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		if i >= len(b) {
			return ^len(b)
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			if i+1 < len(b) && isEscape(b[i+1]) {
				i += 2
				continue
			}
			i = skipUnicode(b, i+1)
		case c < ' ':
			return ^i
		case c < utf8.RuneSelf:
			i++ // fewer than eight bytes are left
		default:
			i = skipRunes(b, i)
		}
		if i < 0 {
			return i
		}
	}
}

// isEscape reports whether c alone may follow a backslash.
func isEscape(c byte) bool {
	const letters = 1<<('\\'-64) | 1<<('b'-64) | 1<<('f'-64) | 1<<('n'-64) | 1<<('r'-64) | 1<<('t'-64)
	return uint64(letters)>>(c-64)&1 == 1 || c == '"' || c == '/'
}

// skipUnicode skips uXXXX. A lone surrogate is accepted: Claude Code writes them.
func skipUnicode(b []byte, i int) int {
	if i == len(b) || b[i] != 'u' {
		return ^i
	}
	for k := i + 1; k <= i+4; k++ {
		if k == len(b) || HexDigit(b[k]) < 0 {
			return ^k
		}
	}
	return i + 5
}

// HexDigit returns the value of a hexadecimal digit, -1 if c is not one.
func HexDigit(c byte) rune {
	switch {
	case c-'0' <= 9:
		return rune(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10
	}
	return -1
}

// skipRunes skips a run of characters beyond ASCII.
func skipRunes(b []byte, i int) int {
	for i < len(b) && b[i] >= utf8.RuneSelf {
		// Three bytes are by far the most frequent; this excludes the lead bytes that restrict the second byte.
		if c := b[i]; c > 0xe0 && c < 0xf0 && c != 0xed && i+2 < len(b) && b[i+1]&0xc0 == 0x80 && b[i+2]&0xc0 == 0x80 {
			i += 3
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return ^i
		}
		i += n
	}
	return i
}

// maxStreamName is the longest escaped name of a file, in bytes. A stream may have two, of a session and its agent, and
// a number. Servers accept 1 KiB.
const maxStreamName = 480

// EscapeName returns a name that every server accepts: control characters, bytes that are not UTF-8, and "%" itself are
// percent-encoded, so that url.PathUnescape gives the name back. A longer name is cut, and ends in "%~" and the hash of
// the whole; that cannot be undone, but no two names become one.
func EscapeName(name string) string {
	if !strings.ContainsFunc(name, escaped) && len(name) <= maxStreamName {
		return name
	}
	var b strings.Builder
	for i, r := range name {
		_, size := utf8.DecodeRuneInString(name[i:])
		char := name[i : i+size]
		if !escaped(r) || r == utf8.RuneError && size > 1 {
			b.WriteString(char)
			continue
		}
		for _, c := range []byte(char) {
			b.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{c})))
		}
	}
	if b.Len() <= maxStreamName {
		return b.String()
	}
	sum := sha256.Sum256([]byte(name))
	end := "%~" + hex.EncodeToString(sum[:])
	return strings.ToValidUTF8(b.String()[:maxStreamName-len(end)], "") + end
}

// escaped reports whether a character may have to be escaped. U+FFFD stands for bytes that are not UTF-8, too.
func escaped(r rune) bool { return unicode.IsControl(r) || r == '%' || r == utf8.RuneError }

// ReplaceStrings replaces the contents of a record's string members of some names. Members of members are left alone,
// and so is every other byte. The line must be one that Scan called an Object; it is returned as it is if nothing
// changes, and is never changed itself.
func ReplaceStrings(line []byte, names []string, replace func(string) string) []byte {
	var out []byte
	copied := 0
	w := walker{line, skipSpace(line, 0) + 1}
	for {
		key, ok := w.key()
		if !ok {
			break
		}
		value := w.value(w.i)
		if len(value) == 0 {
			break
		}
		old := stringContents(value)
		if old == nil || !slices.Contains(names, Unquote(key)) {
			continue
		}
		text := Unquote(old)
		changed := replace(text)
		if changed == text {
			continue
		}
		out = append(out, line[copied:w.i-len(value)]...)
		out = append(out, quote(changed)...)
		copied = w.i
	}
	if out == nil {
		return line
	}
	return append(out, line[copied:]...)
}

// quote makes a JSON string, with only those escapes that JSON demands, as Claude Code writes it.
func quote(text string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string never fails
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
