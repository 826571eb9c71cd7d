package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
)

// The exit codes, which scripts rely on.
const (
	exitOK          = 0
	exitFailed      = 1 // failed, or unequal
	exitUsage       = 2
	exitNotRunning  = 3
	exitUnreachable = 4
	exitRefusedKey  = 5
)

// silent ends a command whose output has said everything already.
type silent struct{ code int }

func (s silent) Error() string { return fmt.Sprintf("exit code %d", s.code) }

// usageError is what cobra found wrong with the arguments, in one line and a hint.
func usageError(err error) error {
	message, rest, _ := strings.Cut(err.Error(), "\n")
	hint := "`ccship --help` lists what there is"
	if _, names, ok := strings.Cut(rest, "Did you mean this?"); ok {
		hint = "did you mean " + strings.Join(strings.Fields(names), " or ") + "?"
	}
	return control.Usage(message, hint)
}

// describe is an error as --json prints it. It has a hint, always.
func describe(err error) *control.Error {
	var config *config.Error
	var known *control.Error
	e := control.Error{Code: control.CodeFailed, Message: err.Error()}
	switch {
	case errors.As(err, &config):
		e.Code, e.Message, e.Hint = control.CodeConfig, config.Message, config.Hint
	case errors.As(err, &known):
		e = *known
	case errors.Is(err, daemon.ErrAlreadyRunning):
		e.Code = control.CodeInUse
	case errors.Is(err, context.Canceled):
		e.Code, e.Message = "interrupted", "interrupted"
	case errors.Is(err, term.ErrNoAnswer):
		e.Code, e.Hint = "interrupted", "flags answer questions too: see --help of the command"
	default:
		e.Hint = show.SystemHint(err)
	}
	if e.Hint == "" {
		e.Hint = show.Hint(e.Code)
	}
	return &e
}

// exitCode is the exit code of a described error.
func exitCode(e *control.Error) int {
	switch e.Code {
	case control.CodeUsage, control.CodeConfig, control.CodeSocket, library.CodeAmbiguous:
		return exitUsage
	case control.CodeNotRunning:
		return exitNotRunning
	case control.CodeUnreachable:
		return exitUnreachable
	case control.CodeRefusedKey:
		return exitRefusedKey
	}
	return exitFailed
}

// report tells the user what went wrong, on stderr in one line and a hint, or on stdout as JSON, and returns the exit
// code.
func (a *app) report(err error) int {
	if err == nil {
		return exitOK
	}
	var quiet silent
	if errors.As(err, &quiet) {
		return quiet.code
	}
	e := describe(err)
	if a.json {
		if a.printJSON(e) == nil {
			return exitCode(e)
		}
	}
	printError(a.stderr, e)
	return exitCode(e)
}

// printError writes the line and the hint. Whoever closed stderr does not want them.
func printError(w io.Writer, e *control.Error) {
	text := "ccship: " + term.OneLine(e.Message) + "\n"
	if e.Hint != "" {
		text += "hint: " + term.OneLine(e.Hint) + "\n"
	}
	_, _ = io.WriteString(w, text)
}
