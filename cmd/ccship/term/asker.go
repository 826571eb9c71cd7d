package term

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

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
