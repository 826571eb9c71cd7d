package redact

import (
	"bytes"
	"encoding/binary"
	"slices"
	"unicode/utf8"
)

// hidesBytes reports whether a text has escapes without a backslash that can split a literal: percent-encoding, references
// of HTML, and invisible characters. The search finds those with one: \/ and \u0020 to \u007f.
func hidesBytes(text []byte) bool {
	return hasByteEscape(text, '%') || hasByteEscape(text, '&') ||
		!isASCII(text) && (hasByteEscape(text, 0xc2) || hasByteEscape(text, 0xef) ||
			(bytes.Contains(text, []byte("\xe2\x80")) || bytes.Contains(text, []byte("\xe2\x81"))) && hasByteEscape(text, 0xe2))
}

// isASCII reports whether no byte of a text is above 0x7f.
func isASCII(text []byte) bool {
	const high = 0x8080808080808080
	for ; len(text) >= 32; text = text[32:] {
		w := binary.LittleEndian.Uint64(text) | binary.LittleEndian.Uint64(text[8:]) |
			binary.LittleEndian.Uint64(text[16:]) | binary.LittleEndian.Uint64(text[24:])
		if w&high != 0 {
			return false
		}
	}
	return !slices.ContainsFunc(text, func(c byte) bool { return c >= utf8.RuneSelf })
}

func isBackslashEscape(text []byte) bool {
	return text[0] == '\\' && (text[1] == '/' || text[1] == 'u' && hidesAsUnicode(text))
}

// hasByteEscape reports whether a text has such an escape that begins with a byte.
func hasByteEscape(text []byte, first byte) bool {
	for {
		i := bytes.IndexByte(text, first)
		if i < 0 || i+1 >= len(text) {
			return false
		}
		text = text[i:]
		switch first {
		case '%':
			if c, size := percent(text); size > 0 && c >= ' ' && c < 0x7f {
				return true
			}
		case '&':
			if _, size := reference(text); size > 0 {
				return true
			}
		default:
			if invisible(text) > 0 {
				return true
			}
		}
		text = text[1:]
	}
}

// hidesAsUnicode reports whether \uXXXX at the start of a text is an ASCII character or an invisible one.
func hidesAsUnicode(text []byte) bool {
	r, ok := hex4(text)
	return ok && (r >= ' ' && r < 0x7f || invisible(utf8.AppendRune(nil, r)) > 0)
}
