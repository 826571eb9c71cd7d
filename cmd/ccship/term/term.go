// Package term is what a terminal shows: how wide a text is, what fits, a screen drawn in place, and progress bars. It
// knows nothing of ccship.
package term

import (
	"io"
	"os"

	"golang.org/x/term"
)

// IsTerminal says whether f is a terminal.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Columns returns the width of the terminal behind w; ok is false when w is not a terminal.
func Columns(w io.Writer) (columns int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || !IsTerminal(f) {
		return 0, false
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns < 20 {
		columns = 80
	}
	return columns, true
}

// Colours says whether to use colours on w: only on a terminal that has them, and never against https://no-color.org.
func Colours(w io.Writer) bool {
	_, ok := Columns(w)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
