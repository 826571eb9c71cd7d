package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// screen draws a text in place on a terminal, over the one drawn before.
type screen struct {
	w             io.Writer
	size          func() (columns, rows int) // now; the window may be resized
	columns, rows int                        // when it was drawn last
	drawn         int                        // lines
}

func newScreen(w io.Writer) *screen {
	return &screen{w: w, size: func() (int, int) { return windowSize(w) }}
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

// draw replaces what was drawn. What does not fit the window is cut: a line that wrapped, or a text that scrolled, would
// leave its traces.
func (s *screen) draw(text string) error {
	columns, rows := s.size()
	var b strings.Builder
	switch {
	case s.drawn == 0:
		b.WriteString("\x1b[?25l") // no cursor while it goes on
	case columns != s.columns || rows != s.rows:
		b.WriteString("\x1b[2J\x1b[H") // the terminal has wrapped the old lines anew
	default:
		fmt.Fprintf(&b, "\x1b[%dA\r", s.drawn)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if most := max(1, rows-1); len(lines) > most {
		lines = append(lines[:most-1:most-1], fmt.Sprintf("… %d more lines", len(lines)-most+1))
	}
	b.WriteString("\x1b[J\x1b[?7l")
	for _, line := range lines {
		b.WriteString(cutColoured(line, columns) + "\n")
	}
	b.WriteString("\x1b[?7h")
	s.columns, s.rows, s.drawn = columns, rows, len(lines)
	_, err := io.WriteString(s.w, b.String())
	return err
}

// close gives the terminal back as it was, behind what was drawn last.
func (s *screen) close() error {
	if s.drawn == 0 {
		return nil
	}
	_, err := io.WriteString(s.w, "\x1b[?7h\x1b[?25h")
	return err
}

// cutColoured is cut for a line with escapes for colours, which take no columns.
func cutColoured(line string, width int) string {
	var b strings.Builder
	used, coloured := 0, false
	for i := 0; i < len(line); {
		if rest := line[i:]; strings.HasPrefix(rest, "\x1b[") {
			if end := strings.IndexByte(rest, 'm'); end > 0 {
				b.WriteString(rest[:end+1])
				coloured = rest[:end+1] != "\x1b[0m"
				i += end + 1
				continue
			}
		}
		r := []rune(line[i:min(len(line), i+4)])[0]
		if used == width-1 && visible(line[i:]) > 1 {
			b.WriteRune('…')
			break
		}
		b.WriteRune(r)
		used++
		i += len(string(r))
	}
	if coloured {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

// visible is how many columns a line with escapes takes.
func visible(line string) (n int) {
	for i := 0; i < len(line); i++ {
		if strings.HasPrefix(line[i:], "\x1b[") {
			if end := strings.IndexByte(line[i:], 'm'); end > 0 {
				i += end
				continue
			}
		}
		if line[i]&0xc0 != 0x80 {
			n++
		}
	}
	return n
}
