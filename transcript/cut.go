package transcript

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Cut returns text, or its first limit characters and a note of how many there were: "…... (1234 chars total)". limit
// 0 or less cuts nothing.
func Cut(text string, limit int) string {
	if limit <= 0 || len(text) <= limit {
		return text
	}
	n := 0
	for i := range text {
		if n == limit {
			return noteTotal([]byte(text[:i]), n+utf8.RuneCountInString(text[i:]))
		}
		n++
	}
	return text
}

func noteTotal(head []byte, total int) string {
	head = append(head, "... ("...)
	head = strconv.AppendInt(head, int64(total), 10)
	return string(append(head, " chars total)"...))
}

// CutEscaped is Cut for the contents of a JSON string, without decoding what is not kept.
func CutEscaped(raw []byte, limit int) string {
	if len(raw) <= limit {
		return Unquote(raw)
	}
	head, rest, n := decodeHead(make([]byte, 0, limit+limit/4), raw, limit)
	if len(rest) == 0 {
		return string(head)
	}
	return noteTotal(head, n+count(rest))
}

// decodeHead appends the first limit characters of a JSON string's contents to dst. n is how many there were.
func decodeHead(dst, raw []byte, limit int) (head, rest []byte, n int) {
	for len(raw) > 0 && n < limit {
		if raw[0] == '\\' {
			var size int
			dst, size = appendEscape(dst, raw)
			raw = raw[size:]
			n++
			continue
		}
		end := bytes.IndexByte(raw, '\\')
		if end < 0 {
			end = len(raw)
		}
		if end > limit-n {
			end = prefix(raw[:end], limit-n)
		}
		dst = append(dst, raw[:end]...)
		n += runes(raw[:end])
		raw = raw[end:]
	}
	return dst, raw, n
}

// appendEscape decodes the escape that raw begins with, and says how long it is.
func appendEscape(dst, raw []byte) ([]byte, int) {
	if len(raw) < 2 {
		return append(dst, raw...), len(raw)
	}
	if raw[1] != 'u' {
		return append(dst, unescape(raw[1])), 2
	}
	r, size := unescapeRune(raw[1:])
	return utf8.AppendRune(dst, r), 1 + size
}

// prefix is how many bytes the first n characters of b take.
func prefix(b []byte, n int) int {
	if len(b) > n && runes(b[:n]) == n && utf8.RuneStart(b[n]) {
		return n // ASCII
	}
	i := 0
	for ; n > 0 && i < len(b); n-- {
		_, size := utf8.DecodeRune(b[i:])
		i += size
	}
	return i
}

// count is how many characters a JSON string's contents stand for.
func count(raw []byte) int {
	n := 0
	for {
		slash := bytes.IndexByte(raw, '\\')
		if slash < 0 {
			return n + runes(raw)
		}
		n += runes(raw[:slash]) + 1
		raw = raw[slash:]
		switch {
		case len(raw) < 2:
			return n
		case raw[1] != 'u':
			raw = raw[2:]
		default:
			_, size := unescapeRune(raw[1:])
			raw = raw[1+size:]
		}
	}
}

// runes is how many characters b holds: its bytes that do not continue one.
func runes(b []byte) int {
	n := len(b)
	for len(b) >= 8 {
		x := binary.LittleEndian.Uint64(b)
		n -= bits.OnesCount64(x & ^(x << 1) & 0x8080808080808080)
		b = b[8:]
	}
	for _, c := range b {
		if c&0xc0 == 0x80 {
			n--
		}
	}
	return n
}

// OneLine puts text on one line of at most limit characters; what was cut off leaves "…".
func OneLine(text string, limit int) string {
	var out []byte
	n, last, space := 0, 0, false
	add := func(r rune) {
		if n++; n == limit {
			last = len(out)
		}
		out = utf8.AppendRune(out, r)
	}
	for _, r := range text {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			space = n > 0
			continue
		}
		if space {
			add(' ')
			space = false
		}
		if add(r); n > limit {
			return strings.TrimRight(string(out[:last]), " ") + "…"
		}
	}
	return string(out)
}
