// Package term is what a terminal shows: how wide a text is, what fits, a screen drawn in place, and progress bars. It
// knows nothing of ccship.
package term

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ccship/ccship/internal/amount"
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

// ErrNoAnswer says that the input ended before a question was answered.
var ErrNoAnswer = errors.New("no answer: the input has ended")

// Asker asks the person at the terminal.
type Asker struct {
	questions io.Writer
	answers   *bufio.Reader
}

// NewAsker writes its questions to w and reads answers from standard input. It returns nil when nobody is there to
// answer: standard input is not a terminal.
func NewAsker(w io.Writer) *Asker {
	if !IsTerminal(os.Stdin) {
		return nil
	}
	return &Asker{w, bufio.NewReader(os.Stdin)}
}

// Line asks for one line; an empty answer is preset. When ctx ends, the question does too.
func (k *Asker) Line(ctx context.Context, question, preset string) (string, error) {
	if preset != "" {
		question += " [" + preset + "]"
	}
	k.write(question + ": ")
	text, err := k.await(ctx, func() (string, error) { return k.answers.ReadString('\n') })
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if text = strings.TrimSpace(text); text != "" {
		return text, nil
	}
	if err != nil {
		k.write("\n")
		return "", ErrNoAnswer
	}
	return preset, nil
}

// Yes asks a question that is answered with y or n; an empty answer is preset.
func (k *Asker) Yes(ctx context.Context, question string, preset bool) (bool, error) {
	choice := "y/N"
	if preset {
		choice = "Y/n"
	}
	for {
		text, err := k.Line(ctx, question+" ("+choice+")", "")
		if err != nil {
			return false, err
		}
		switch strings.ToLower(text) {
		case "":
			return preset, nil
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
	}
}

// Secret asks for a line that is not shown while it is typed. When ctx ends, the question does too, and the terminal
// shows again what is typed.
func (k *Asker) Secret(ctx context.Context, question string) (string, error) {
	k.write(question + ": ")
	if k.answers.Buffered() > 0 { // typed or pasted ahead: it is on the screen already
		return k.Line(ctx, "", "")
	}
	terminal := int(os.Stdin.Fd())
	before, err := term.GetState(terminal)
	if err != nil {
		return "", fmt.Errorf("ask: %w", err)
	}
	text, err := k.await(ctx, func() (string, error) {
		text, err := term.ReadPassword(terminal)
		return string(text), err
	})
	if ctx.Err() != nil {
		_ = term.Restore(terminal, before) // the reader, which hides what is typed, still waits
	} else {
		k.write("\n")
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimSpace(text), nil
}

// await returns what read reads, or the end of ctx. A terminal gives no way to end a read: it goes on until the program
// ends, which is soon.
func (k *Asker) await(ctx context.Context, read func() (string, error)) (string, error) {
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		text, err := read()
		got <- answer{text, err}
	}()
	select {
	case <-ctx.Done():
		k.write("\n")
		return "", context.Cause(ctx)
	case a := <-got:
		if a.err != nil && !errors.Is(a.err, io.EOF) {
			a.err = fmt.Errorf("read answer: %w", a.err)
		}
		return a.text, a.err
	}
}

// write ignores errors: when nobody sees a question, the answer shows it.
func (k *Asker) write(text string) { _, _ = io.WriteString(k.questions, Safe(text, false)) }

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

// Progress returns one picture of a progress bar, width columns wide, and the sizes behind it.
func Progress(done, total int64, width int) string {
	total = max(total, 1)
	share := float64(min(max(done, 0), total)) / float64(total)
	full := int(share * float64(width))
	return fmt.Sprintf("%d%% %s%s  %s of %s", int(100*share), strings.Repeat("█", full), strings.Repeat("░", width-full),
		amount.Size(done), amount.Size(total))
}

// Bar is a progress bar over bytes on a terminal; their total may still grow. It is for one goroutine.
type Bar struct {
	w     io.Writer
	doing string
	began time.Time
	drawn bool
	best  float64 // the greatest share that was shown
}

// NewBar draws on w. It returns nil, on which every method does nothing, when w is not a terminal.
func NewBar(w io.Writer, doing string) *Bar {
	if _, ok := Columns(w); !ok {
		return nil
	}
	return &Bar{w: w, doing: doing, began: time.Now()}
}

// Set moves the bar. It never goes back: a total that has grown holds it where it is.
func (b *Bar) Set(done, total int64) {
	if b == nil {
		return
	}
	columns, _ := Columns(b.w)
	done = b.forward(done, total)
	text := b.doing + " " + Progress(done, total, min(40, max(10, columns-60)))
	if left := remaining(time.Since(b.began), done, total); left >= time.Second {
		text += ", about " + amount.Duration(left) + " left"
	}
	b.drawn = true
	_, _ = io.WriteString(b.w, "\r"+Cut(Safe(text, false), columns-1)+"\x1b[K") // a closed terminal stops nothing
}

// forward returns what is shown as done: at least the share that was shown before.
func (b *Bar) forward(done, total int64) int64 {
	done = min(max(done, 0), total)
	if share := float64(done) / float64(max(total, 1)); share > b.best {
		b.best = share
	}
	return max(done, int64(b.best*float64(total)))
}

// Note shows words instead of the bar.
func (b *Bar) Note(words string) {
	if b == nil {
		return
	}
	columns, _ := Columns(b.w)
	b.drawn = true
	_, _ = io.WriteString(b.w, "\r"+Cut(Safe(b.doing+" "+words, false), columns-1)+"\x1b[K")
}

// remaining returns how long the rest takes at the rate so far; 0 while there is none.
func remaining(spent time.Duration, done, total int64) time.Duration {
	if done <= 0 {
		return 0
	}
	return time.Duration(float64(spent) / float64(done) * float64(total-done))
}

// Clear removes the bar from the screen.
func (b *Bar) Clear() {
	if b != nil && b.drawn {
		_, _ = io.WriteString(b.w, "\r\x1b[K")
	}
}

// CompletionCommand prints what makes a shell complete a program's command lines.
func CompletionCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|fish|powershell|zsh",
		Short: "Print what makes a shell complete commands, flags and names",
		Long: "Print the script that makes a shell complete commands, flags and names. In bash it is loaded with " +
			"`source <(" + root.Name() + " completion bash)`.",
		ValidArgs: []string{"bash", "fish", "powershell", "zsh"},
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(c *cobra.Command, args []string) error {
			out := c.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			case "zsh":
				return root.GenZshCompletion(out)
			}
			return fmt.Errorf("no completion for %s", args[0])
		},
	}
}
