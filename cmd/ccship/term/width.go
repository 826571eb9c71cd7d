package term

import (
	"strings"
	"unicode"

	"github.com/clipperhouse/displaywidth"
)

// measure counts columns as terminals do: two for the scripts of East Asia and for emoji, none for combining marks and
// for escape sequences such as colours.
func measure() displaywidth.Options { return displaywidth.Options{ControlSequences: true} }

// Width returns how many columns s takes.
func Width(s string) int { return measure().String(s) }

// Cut shortens s to width columns. A cut text ends with an ellipsis; its escape sequences stay. Of characters that take
// no column only a few stay behind another one: they would make a short text long.
func Cut(s string, width int) string {
	if width < 1 {
		return ""
	}
	return measure().TruncateString(thin(s), width, "…")
}

// mostMarks is how many characters without a width follow one another in a text: a flag of emoji tags has six.
const mostMarks = 6

// thin leaves out what is above mostMarks.
func thin(s string) string {
	run := 0
	return strings.Map(func(r rune) rune {
		if run++; !unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
			run = 0
		}
		if run > mostMarks {
			return -1
		}
		return r
	}, s)
}

// Pad fills s with spaces up to width columns.
func Pad(s string, width int) string { return s + strings.Repeat(" ", max(0, width-Width(s))) }
