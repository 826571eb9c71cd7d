package term

import "strings"

// OneLine joins the lines of s, with one space between words.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Printable is s in one line, without control characters: text that others wrote must not steer the terminal.
func Printable(s string) string { return OneLine(Harmless(s)) }

// Harmless replaces the characters of s that do more than show a glyph (see Steers), and bytes that are not UTF-8.
func Harmless(s string) string {
	return strings.Map(func(r rune) rune {
		if Steers(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
