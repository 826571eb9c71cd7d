package sqlstore

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ccship/ccship/transcript"
)

// FoldText returns text in its searchable form: valid, composed, in lower case, with one space for any run of white
// space and control characters, and none at the ends.
func FoldText(text string) string { return string(AppendFolded(make([]byte, 0, len(text)), text)) }

// AppendFolded appends FoldText of a text.
func AppendFolded(to []byte, text string) []byte {
	text = transcript.Compose(text)
	to = slices.Grow(to, len(text))
	from, space := len(to), false
	for i := 0; i < len(text); {
		c := text[i]
		r, size := rune(c), 1
		if c < utf8.RuneSelf {
			if c = plain[c]; c != 0 && !space {
				to = append(to, c)
				i++
				continue
			}
		} else {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		i += size
		switch {
		case isSpace(r):
			space = len(to) > from
			continue
		case space:
			to, space = append(to, ' '), false
		}
		if r < utf8.RuneSelf {
			to = append(to, c)
		} else {
			to = utf8.AppendRune(to, unicode.ToLower(r))
		}
	}
	return to
}

// plain is what each ASCII character becomes; 0 for space.
var plain = func() (out [utf8.RuneSelf]byte) {
	for c := range out {
		if !isSpace(rune(c)) {
			out[c] = byte(unicode.ToLower(rune(c)))
		}
	}
	return out
}()

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

// LikeContains returns a LIKE pattern, with \ as its escape, for texts that hold word.
func LikeContains(word string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(word) + "%"
}
