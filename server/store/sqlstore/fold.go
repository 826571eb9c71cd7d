package sqlstore

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// FoldText returns text in its searchable form: valid, in lower case, with one space for any run of white space and
// control characters, and none at the ends.
func FoldText(text string) string {
	out := make([]byte, 0, len(text))
	space := false
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		i += size
		if isSpace(r) {
			space = len(out) > 0
			continue
		}
		if space {
			out = append(out, ' ')
			space = false
		}
		switch {
		case 'A' <= r && r <= 'Z':
			out = append(out, byte(r)+'a'-'A')
		case r < utf8.RuneSelf:
			out = append(out, byte(r))
		default:
			out = utf8.AppendRune(out, unicode.ToLower(r))
		}
	}
	return string(out)
}

func isSpace(r rune) bool {
	if r < utf8.RuneSelf {
		return r <= ' ' || r == 0x7f
	}
	return unicode.IsSpace(r) || unicode.IsControl(r)
}

// foldSpace returns text with one space for any run of white space and control characters, and none at the ends.
func foldSpace(text string) string { return strings.Join(strings.FieldsFunc(text, isSpace), " ") }

// IsASCII reports whether a text holds nothing else.
func IsASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// LikeContains is a LIKE pattern, with \ as its escape, for texts that hold word.
func LikeContains(word string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(word) + "%"
}
