package markup

import (
	"fmt"
	"html/template"
	"strings"
	"unicode/utf8"
)

// Text is s as it is, with what can't be seen made visible: control characters and those that turn the direction of
// text around, with which code can be made to look like other code.
func Text(s string) template.HTML {
	var b strings.Builder
	b.Grow(len(s) + len(s)/16)
	writeText(&b, s)
	return template.HTML(b.String()) //nolint:gosec // escaped by writeText
}

// writeText escapes s for the content of an element. It may write elements, so it is not for attributes.
func writeText(b *strings.Builder, s string) {
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if seen := asciiEscape(c); seen != "" {
				b.WriteString(s[start:i])
				b.WriteString(seen)
				start = i + 1
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			b.WriteString(s[start:i])
			b.WriteRune(utf8.RuneError)
			start = i + 1
		} else if turns(r) || r >= 0x80 && r < 0xa0 {
			b.WriteString(s[start:i])
			fmt.Fprintf(b, `<span class="ctl">U+%04X</span>`, r)
			start = i + n
		}
		i += n
	}
	b.WriteString(s[start:])
}

// asciiEscape is what stands for a character that can't stand for itself, else "".
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
