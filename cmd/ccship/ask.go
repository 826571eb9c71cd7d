package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/ccship/ccship/daemon/control"
)

// asker asks the person at the terminal. Questions go to stderr.
type asker struct {
	app   *app
	input *bufio.Reader
}

// asker is nil when nobody is there to answer: standard input is no terminal.
func (a *app) asker() *asker {
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return nil
	}
	return &asker{a, bufio.NewReader(os.Stdin)}
}

// line asks for one line; an empty answer is preset.
func (k *asker) line(question, preset string) (string, error) {
	if preset != "" {
		question += " [" + preset + "]"
	}
	k.prompt(question + ": ")
	text, err := k.input.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read answer: %w", err)
	}
	if text = strings.TrimSpace(text); text != "" {
		return text, nil
	}
	if err != nil {
		k.app.say("")
		return "", control.NewError("interrupted", "no answer: the input has ended",
			"`ccship setup --help` lists the flags that answer instead")
	}
	return preset, nil
}

// yes asks a question that is answered with y or n; an empty answer is preset.
func (k *asker) yes(question string, preset bool) (bool, error) {
	choice := "y/N"
	if preset {
		choice = "Y/n"
	}
	for {
		text, err := k.line(question+" ("+choice+")", "")
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

// secret asks for what nobody is to see on the screen.
func (k *asker) secret(question string) (string, error) {
	k.prompt(question + ": ")
	if k.input.Buffered() > 0 { // typed or pasted ahead: it is on the screen already
		return k.line("", "")
	}
	text, err := term.ReadPassword(int(os.Stdin.Fd()))
	k.app.say("")
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read answer: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// prompt writes without a newline. A closed stderr has no one to ask, which the answer will show.
func (k *asker) prompt(text string) { _, _ = io.WriteString(k.app.stderr, text) }
