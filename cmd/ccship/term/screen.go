package term

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Screen draws a text in place on a terminal, over the one drawn before.
type Screen struct {
	w             io.Writer
	size          func() (columns, rows int) // now; the window may be resized
	columns, rows int                        // when it was drawn last
	drawn         int                        // lines
}

// NewScreen draws on w, which is a terminal.
func NewScreen(w io.Writer) *Screen {
	return &Screen{w: w, size: func() (int, int) { return windowSize(w) }}
}

// windowSize is that of the terminal behind w; 80 by 24 where it is not known.
func windowSize(w io.Writer) (columns, rows int) {
	if f, ok := w.(*os.File); ok {
		columns, rows, _ = term.GetSize(int(f.Fd()))
	}
	if columns <= 0 || rows <= 0 {
		return 80, 24
	}
	return columns, rows
}

// Columns returns the width of the window now.
func (s *Screen) Columns() int {
	columns, _ := s.size()
	return columns
}

// Draw replaces what was drawn. What does not fit the window is cut: a line that wraps, or a text that scrolls, would
// leave its traces.
func (s *Screen) Draw(text string) error {
	columns, rows := s.size()
	var b strings.Builder
	switch {
	case s.drawn == 0:
		b.WriteString("\x1b[?25l") // hide the cursor
	case columns != s.columns || rows != s.rows:
		b.WriteString("\x1b[2J\x1b[H") // the terminal has wrapped the old lines at the new width
	default:
		fmt.Fprintf(&b, "\x1b[%dA\r", s.drawn)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if most := max(1, rows-1); len(lines) > most {
		lines = append(lines[:most-1:most-1], fmt.Sprintf("… %d more lines", len(lines)-most+1))
	}
	b.WriteString("\x1b[J\x1b[?7l")
	for _, line := range lines {
		b.WriteString(Cut(Safe(line, true), columns) + "\n")
	}
	b.WriteString("\x1b[?7h")
	s.columns, s.rows, s.drawn = columns, rows, len(lines)
	_, err := io.WriteString(s.w, b.String())
	return err
}

// Close shows the cursor again, below what was drawn last.
func (s *Screen) Close() error {
	if s.drawn == 0 {
		return nil
	}
	_, err := io.WriteString(s.w, "\x1b[?7h\x1b[?25h")
	return err
}
