package term

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/ccship/ccship/e2e/kit"
)

func tree() (*cobra.Command, *bytes.Buffer) {
	root := &cobra.Command{Use: "thing", Short: "Do a thing", Run: func(*cobra.Command, []string) {}}
	c := &cobra.Command{Use: "pause", Short: "Stop for a while", Long: "Stop sending, for a while or until it is ended, whatever comes first of the two.", Run: func(*cobra.Command, []string) {}}
	c.Flags().Duration("for", 0, "how long; without it, until `thing resume`")
	c.Flags().String("since", "", "only since then, which may be a day or a number of hours or days before now")
	c.Flags().Int("limit", 20, "how many")
	c.Flags().String("session", "", "only of this `session`")
	c.Flags().StringSlice("by", nil, "columns")
	c.Flags().Bool("json", false, "print JSON")
	root.AddCommand(c)
	var out bytes.Buffer
	root.SetOut(&out)
	Dress(root)
	return root, &out
}

// A flag's placeholder is one word, and neither its name nor a type.
func TestPlaceholders(t *testing.T) {
	root, out := tree()
	root.SetArgs([]string{"pause", "--help"})
	kit.Must(t, root.Execute())
	for _, want := range []string{
		"--for duration ", "how long; without it, until thing resume\n", "--since when ", "--limit number ", "(default 20)\n", "--session id ", "--by list ", "--json ",
	} {
		kit.Check(t, strings.Contains(out.String(), want), "no %q in\n%s", want, out)
	}
	root.SetArgs([]string{"pause", "--limit", "3", "--by", "a,b", "--session", "x"})
	kit.Must(t, root.Execute())
}

// On a terminal no line is longer than it, and no word is lost.
func TestFit(t *testing.T) {
	root, _ := tree()
	text := root.Commands()[1].Long + "\n\n" + root.Commands()[1].UsageString()
	for _, columns := range []int{40, 60, 80} {
		got := fit(text, columns)
		kit.Check(t, strings.Join(strings.Fields(got), " ") == strings.Join(strings.Fields(text), " "),
			"%d columns: other words:\n%s", columns, got)
		for line := range strings.Lines(got) {
			kit.Check(t, Width(strings.TrimSuffix(line, "\n")) <= columns, "%d columns: %q", columns, line)
		}
	}
	kit.Check(t, fit(text, 0) == text, "without a terminal it is another text")
}

func TestProgress(t *testing.T) {
	for _, c := range []struct {
		done, total int64
		want        string
	}{
		{0, 0, "0% ░░░░  0 B of 1 B"},
		{1, 2, "50% ██░░  1 B of 2 B"},
		{9_000_000, 9_000_000, "100% ████  9.0 MB of 9.0 MB"},
		{12, 10, "100% ████  12 B of 10 B"},
		{-1, 10, "0% ░░░░  0 B of 10 B"},
	} {
		got := Progress(c.done, c.total, 4)
		kit.Check(t, got == c.want, "%d of %d: %q, want %q", c.done, c.total, got, c.want)
	}
}

func TestRemaining(t *testing.T) {
	for _, c := range []struct{ done, total, want int64 }{{0, 100, 0}, {25, 100, 30}, {100, 100, 0}} {
		got := remaining(10*time.Second, c.done, c.total)
		kit.Check(t, got == time.Duration(c.want)*time.Second, "%d of %d: %s", c.done, c.total, got)
	}
}

// Where nobody watches nothing is drawn.
func TestBarWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	bar := NewBar(&out, "importing")
	bar.Set(1, 2)
	bar.Clear()
	kit.Check(t, bar == nil && out.Len() == 0, "%q", out.String())
}

// What is queued counts as not done, and totals grow: the bar stays where it is until it can go on.
func TestBarForward(t *testing.T) {
	b := &Bar{}
	for _, step := range []struct{ done, total, want int64 }{{0, 0, 0}, {50, 100, 50}, {40, 100, 50}, {60, 200, 100}, {150, 200, 150}, {9, 8, 8}} {
		got := b.forward(step.done, step.total)
		kit.Check(t, got == step.want, "%d of %d is shown as %d, want %d", step.done, step.total, got, step.want)
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
