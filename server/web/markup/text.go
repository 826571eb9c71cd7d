package markup

import (
	"fmt"
	"unicode/utf8"
)

// wideEscape returns what stands for the character that s begins with, "" if it stands for itself, and its length.
func wideEscape(s string) (seen string, n int) {
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && n == 1:
		return string(utf8.RuneError), n
	case turns(r) || r >= 0x80 && r < 0xa0:
		return fmt.Sprintf(`<span class="ctl">U+%04X</span>`, r), n
	}
	return "", n
}

// asciiEscape returns what stands for a character that can't stand for itself, else "".
func asciiEscape(c byte) string {
	switch {
	case c == '&':
		return "&amp;"
	case c == '<':
		return "&lt;"
	case c == '>':
		return "&gt;"
	case c == '"':
		return "&#34;"
	case c == '\'':
		return "&#39;"
	case c == '\n' || c == '\t':
		return ""
	case c == '\r':
		return " "
	case c < 0x20:
		return `<span class="ctl">` + string(rune(0x2400+int(c))) + `</span>`
	case c == 0x7f:
		return `<span class="ctl">␡</span>`
	}
	return ""
}

// turns says whether r changes the direction of the text around it.
func turns(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x061c
}
