package show

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
)

// The exit codes, which scripts rely on.
const (
	ExitOK          = 0
	ExitFailed      = 1 // failed, or unequal
	ExitUsage       = 2
	ExitNotRunning  = 3
	ExitUnreachable = 4
	ExitRefusedKey  = 5
)

// SilentError ends a command with an exit code. The command's output has said everything already.
type SilentError struct{ Code int }

func (s SilentError) Error() string { return fmt.Sprintf("exit code %d", s.Code) }

// Describe returns an error as --json prints it. It always has a hint.
func Describe(err error) *control.Error {
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
		e.Code, e.Hint = "interrupted", "flags can answer the questions; see the command's --help"
	default:
		e.Hint = SystemHint(err)
	}
	if e.Hint == "" {
		e.Hint = Hint(e.Code)
	}
	return &e
}

// ExitCode returns the exit code of a described error.
func ExitCode(e *control.Error) int {
	switch e.Code {
	case control.CodeUsage, control.CodeConfig, control.CodeSocket, library.CodeAmbiguous:
		return ExitUsage
	case control.CodeNotRunning:
		return ExitNotRunning
	case control.CodeUnreachable:
		return ExitUnreachable
	case control.CodeRefusedKey:
		return ExitRefusedKey
	}
	return ExitFailed
}

// Report tells the user what went wrong, on stderr in one line and a hint, or on stdout as JSON, and returns the exit
// code.
func (a *App) Report(err error) int {
	if err == nil {
		return ExitOK
	}
	var quiet SilentError
	if errors.As(err, &quiet) {
		return quiet.Code
	}
	e := Describe(err)
	if a.JSON {
		if a.PrintJSON(e) == nil {
			return ExitCode(e)
		}
	}
	PrintError(a.Stderr, e)
	return ExitCode(e)
}

// PrintError writes the line and the hint. A caller that closed stderr does not want them.
func PrintError(w io.Writer, e *control.Error) {
	columns, _ := term.Columns(w)
	text := term.Hang("ccship: "+term.Printable(e.Message), columns, 2) + "\n"
	if e.Hint != "" {
		text += term.Hang("hint: "+term.Printable(e.Hint), columns, 2) + "\n"
	}
	_, _ = io.WriteString(w, text)
}

// counts is how cobra names a number of arguments.
var counts = regexp.MustCompile(`(\d+) arg\(s\)`)

// UsageError is what cobra found wrong with the arguments of a command, in one line and a hint.
func UsageError(command string, err error) error {
	message, rest, _ := strings.Cut(err.Error(), "\n")
	if counts.MatchString(message) {
		message = counts.ReplaceAllString(command+" "+message, "$1 arguments")
		message = strings.ReplaceAll(message, " 1 arguments", " 1 argument")
	}
	hint := Hint(control.CodeUsage)
	if command != "ccship" {
		hint = "`" + command + " --help` lists what it takes"
	}
	if _, names, ok := strings.Cut(rest, "Did you mean this?"); ok {
		hint = "did you mean " + strings.Join(strings.Fields(names), " or ") + "?"
	}
	return control.Usage(message, hint)
}

// Unfinished returns the error of a sync that ended before everything was delivered.
func Unfinished(r control.SyncResult) *control.Error {
	e := &control.Error{Code: r.Reason, Hint: cmp.Or(r.Hint, Hint(r.Reason)), Retryable: true}
	switch r.Reason {
	case "timeout":
		e.Message = "the time limit has passed and lines still wait"
		return e
	case control.CodeUnreachable:
		e.Message = "the server cannot be reached"
		if strings.HasPrefix(r.Detail, "answered ") {
			e.Message, e.Hint = "the server cannot store lines now", cmp.Or(r.Hint, Hint("server_error"))
		}
	case control.CodeRefusedKey:
		e.Message = "the server rejects the API key"
	case "refused":
		e.Message = "the server refuses what is sent to it"
	case "paused":
		e.Message = "sending was paused, and lines still wait"
		return e
	default:
		e.Message = "not everything is delivered"
	}
	if r.Detail != "" {
		e.Message += ": " + r.Detail
	}
	return e
}
