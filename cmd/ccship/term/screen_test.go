package term

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ccship/ccship/e2e/kit"
)

// terminalOf is a terminal of a size that shows what is written to it.
type terminalOf struct {
	t             *testing.T
	columns, rows int
	lines         []string
	row           int
	hidden        bool
}

// Write understands what screen writes, and no more.
func (d *terminalOf) Write(p []byte) (int, error) {
	d.t.Helper()
	for text := string(p); text != ""; {
		switch {
		case strings.HasPrefix(text, "\x1b["):
			end := strings.IndexFunc(text[2:], func(r rune) bool { return r >= 'A' && r != '?' && (r < '0' || r > '9') }) + 2
			d.escape(text[2:end], text[end])
			text = text[end+1:]
		case text[0] == '\n': // the terminal goes back to the first column by itself
			d.row++
			kit.Check(d.t, d.row < d.rows, "the screen of %d rows scrolls", d.rows)
			text = text[1:]
		case text[0] == '\r':
			text = text[1:]
		default:
			r, n := utf8.DecodeRuneInString(text)
			for len(d.lines) <= d.row {
				d.lines = append(d.lines, "")
			}
			d.lines[d.row] += string(r)
			kit.Check(d.t, Width(d.lines[d.row]) <= d.columns, "a line of more than %d columns: %q", d.columns, d.lines[d.row])
			text = text[n:]
		}
	}
	return len(p), nil
}

func (d *terminalOf) escape(argument string, what byte) {
	d.t.Helper()
	switch {
	case what == 'A':
		n := 0
		for _, c := range argument {
			n = n*10 + int(c-'0')
		}
		d.row -= n
		kit.Check(d.t, d.row >= 0, "the cursor goes above the screen")
	case what == 'J':
		d.lines = d.lines[:min(d.row, len(d.lines))]
		if argument == "2" {
			d.lines = nil
		}
	case what == 'H':
		d.row = 0
	case argument == "?25":
		d.hidden = what == 'l'
	}
}

// tall is a text of thirty lines.
func tall() string {
	return "ccship: sending\n" + strings.Repeat("  server   http://127.0.0.1:5000, not reachable, next try in 4 s\n", 29)
}

// The screen shows each text instead of the one before, at every size, and gives the cursor back.
func TestScreen(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {20, 24}, {80, 5}, {1, 2}, {40, 3}} {
		d := &terminalOf{t: t, columns: size[0], rows: size[1]}
		s := &Screen{w: d, size: func() (int, int) { return d.columns, d.rows }}
		for _, text := range []string{tall(), "ccship: watching\n", "\x1b[32mccship\x1b[0m: 안녕하세요 여러분\n\n  hint: none\n"} {
			kit.Must(t, s.Draw(text))
			lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			want := min(len(lines), d.rows-1)
			kit.Check(t, len(d.lines) == want && d.hidden, "%v: %d lines shown of %q, want %d", size, len(d.lines), text, want)
			kit.Check(t, d.columns <= 10 || want <= 1 || strings.Contains(d.lines[0], "ccship"),
				"%v: the first line is %q", size, d.lines[0])
		}
		d.columns, d.rows = d.columns+7, d.rows+2
		err := s.Draw("one\n")
		kit.Check(t, err == nil && len(d.lines) == 1 && d.lines[0] == "one", "%v: after resizing %q", size, d.lines)
		kit.Check(t, s.Close() == nil && !d.hidden, "%v: the cursor is not given back", size)
	}
	var untouched bytes.Buffer
	err := NewScreen(&untouched).Close()
	kit.Check(t, err == nil && untouched.Len() == 0, "a screen that was never drawn says %q", untouched.String())
}
