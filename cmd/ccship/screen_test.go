package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCutColoured(t *testing.T) {
	for _, test := range []struct {
		line  string
		width int
		want  string
	}{
		{"", 5, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"abc", 1, "…"},
		{"\x1b[31mabc\x1b[0m", 3, "\x1b[31mabc\x1b[0m"},
		{"\x1b[31mabcd\x1b[0m", 3, "\x1b[31mab…\x1b[0m"},
		{"a\x1b[31mbcd\x1b[0mef", 3, "a\x1b[31mb…\x1b[0m"},
		{"\x1b[31mab\x1b[0mcd", 3, "\x1b[31mab\x1b[0m…"},
		{"● é漢x", 4, "● é…"},
	} {
		if got := cutColoured(test.line, test.width); got != test.want {
			t.Errorf("cut of %q to %d is %q, want %q", test.line, test.width, got, test.want)
		}
	}
}

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
			if d.row >= d.rows {
				d.t.Errorf("the screen of %d rows scrolls", d.rows)
			}
			text = text[1:]
		case text[0] == '\r':
			text = text[1:]
		default:
			r, n := utf8.DecodeRuneInString(text)
			for len(d.lines) <= d.row {
				d.lines = append(d.lines, "")
			}
			d.lines[d.row] += string(r)
			if utf8.RuneCountInString(d.lines[d.row]) > d.columns {
				d.t.Errorf("a line of more than %d columns: %q", d.columns, d.lines[d.row])
			}
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
		if d.row -= n; d.row < 0 {
			d.t.Errorf("the cursor goes above the screen")
		}
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

// The screen shows each text in place of the one before, at every size, and gives the cursor back.
func TestScreen(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {20, 24}, {80, 5}, {1, 2}, {40, 3}} {
		d := &terminalOf{t: t, columns: size[0], rows: size[1]}
		s := &screen{w: d, size: func() (int, int) { return d.columns, d.rows }}
		for name := range statuses() {
			text := statusView{now: moment(), colour: true}.render(statuses()[name])
			if err := s.draw(text); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			want := min(len(lines), d.rows-1)
			if len(d.lines) != want && !(want > 0 && len(d.lines) == want-1 && lines[len(lines)-1] == "") || !d.hidden {
				t.Errorf("%v %s: %d lines shown, want %d", size, name, len(d.lines), want)
			}
			if len(d.lines) > 0 && d.columns > 10 && !strings.Contains(d.lines[0], "ccship") && want > 1 {
				t.Errorf("%v %s: the first line is %q", size, name, d.lines[0])
			}
		}
		d.columns, d.rows = d.columns+7, d.rows+2
		if err := s.draw("one\n"); err != nil || len(d.lines) != 1 || d.lines[0] != "one" {
			t.Errorf("%v: after resizing %q", size, d.lines)
		}
		if err := s.close(); err != nil || d.hidden {
			t.Errorf("%v: the cursor is not given back", size)
		}
	}
	var untouched bytes.Buffer
	if err := newScreen(&untouched).close(); err != nil || untouched.Len() > 0 {
		t.Errorf("a screen that was never drawn says %q", untouched.String())
	}
}
