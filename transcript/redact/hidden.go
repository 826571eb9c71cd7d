package redact

import (
	"bytes"
	"unicode/utf8"

	"github.com/ccship/ccship/transcript"
)

// hidesBytes reports whether a text has percent-encoding or references of HTML, which can split a literal. The search
// finds what else can: \/, \u0020 to \u007f, and invisible characters.
func hidesBytes(text []byte) bool { return hasByteEscape(text, '%') || hasByteEscape(text, '&') }

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
		}
		text = text[1:]
	}
}

// hidesAsUnicode reports whether \uXXXX at the start of a text is an ASCII character or an invisible one.
func hidesAsUnicode(text []byte) bool {
	r, ok := transcript.Hex4(text[1:])
	return ok && (r >= ' ' && r < 0x7f || invisible(utf8.AppendRune(nil, r)) > 0)
}
