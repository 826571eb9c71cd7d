package term

import (
	"bufio"
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

// Line asks for one line; an empty answer is preset.
func (k *Asker) Line(question, preset string) (string, error) {
	if preset != "" {
		question += " [" + preset + "]"
	}
	k.write(question + ": ")
	text, err := k.answers.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read answer: %w", err)
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
func (k *Asker) Yes(question string, preset bool) (bool, error) {
	choice := "y/N"
	if preset {
		choice = "Y/n"
	}
	for {
		text, err := k.Line(question+" ("+choice+")", "")
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

// Secret asks for a line that is not shown while it is typed.
func (k *Asker) Secret(question string) (string, error) {
	k.write(question + ": ")
	if k.answers.Buffered() > 0 { // typed or pasted ahead: it is on the screen already
		return k.Line("", "")
	}
	text, err := term.ReadPassword(int(os.Stdin.Fd()))
	k.write("\n")
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read answer: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// write ignores errors: when nobody sees a question, the answer shows it.
func (k *Asker) write(text string) { _, _ = io.WriteString(k.questions, Safe(text, false)) }
