package transcript

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote decodes the contents of a JSON string, as Line holds them. A lone surrogate, which UTF-8 cannot express,
// becomes U+FFFD: fine for display and lookups, never for delivery.
func Unquote(raw []byte) string {
	n := bytes.IndexByte(raw, '\\')
	if n < 0 {
		return string(raw)
	}
	var out strings.Builder
	out.Grow(len(raw))
	for n >= 0 && n+1 < len(raw) {
		out.Write(raw[:n])
		raw = raw[n+1:]
		if raw[0] != 'u' {
			out.WriteByte(unescape(raw[0]))
			raw = raw[1:]
		} else {
			r, size := unescapeRune(raw)
			out.WriteRune(r)
			raw = raw[size:]
		}
		n = bytes.IndexByte(raw, '\\')
	}
	out.Write(raw)
	return out.String()
}

func unescape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// unescapeRune decodes uXXXX, and the low surrogate that follows a high one. It returns the character and the bytes
// consumed.
func unescapeRune(raw []byte) (rune, int) {
	high, ok := Hex4(raw)
	if !ok {
		return utf8.RuneError, 1
	}
	if !utf16.IsSurrogate(high) {
		return high, 5
	}
	if len(raw) > 6 && raw[5] == '\\' {
		if low, ok := Hex4(raw[6:]); ok {
			if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
				return r, 11
			}
		}
	}
	return utf8.RuneError, 5
}

// Hex4 parses the number in uXXXX.
func Hex4(raw []byte) (rune, bool) {
	if len(raw) < 5 || raw[0] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range raw[1:5] {
		d := HexDigit(c)
		if d < 0 {
			return 0, false
		}
		r = r<<4 | d
	}
	return r, true
}
