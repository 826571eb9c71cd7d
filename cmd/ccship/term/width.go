package term

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// measure counts columns as terminals do: two for the scripts of East Asia and for emoji, none for combining marks and
// for escape sequences such as colours.
func measure() displaywidth.Options { return displaywidth.Options{ControlSequences: true} }

// Width returns how many columns s takes.
func Width(s string) int { return measure().String(s) }

// Cut shortens s to width columns. A cut text ends with an ellipsis; its escape sequences stay.
func Cut(s string, width int) string {
	if width < 1 {
		return ""
	}
	return measure().TruncateString(s, width, "…")
}

// Pad fills s with spaces up to width columns.
func Pad(s string, width int) string { return s + strings.Repeat(" ", max(0, width-Width(s))) }
