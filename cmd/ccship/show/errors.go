package show

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/internal/amount"
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

// Hint returns what to do about an error of which nothing more is known than its code.
func Hint(code string) string {
	switch code {
	case control.CodeNotRunning:
		return "`ccship setup` connects to a server and starts it; `ccship run` starts it in this terminal"
	case control.CodeNoAnswer:
		return "it may be stopped or overloaded: check its process, or restart it"
	case control.CodeUsage:
		return "`ccship help all` lists all commands and flags"
	case control.CodeConfig:
		return "`ccship config --help` lists every key, `ccship doctor` checks what is set"
	case control.CodeInUse:
		return "`ccship status` shows the daemon that runs; stop it first"
	case control.CodeSocket:
		return "choose another path with --socket; `ccship config` prints the one in use"
	case "no_server":
		return "`ccship setup` connects to one, or starts one on this machine; `ccship up` only tries it out"
	case "full":
		return "make the server reachable or free disk space; reading then resumes by itself"
	case "paused":
		return "`ccship unpause` or `ccship sync` ends the pause"
	case control.CodeNoDeadLetter:
		return "`ccship outbox list --dead` lists them"
	case control.CodeNoSession:
		return "`ccship list` lists them"
	case control.CodeDocument:
		return "`ccship link list` shows linked files; only files below the session's folder can be linked"
	case control.CodeNoPattern:
		return "`ccship exclude` shows what is excluded, and why"
	case "timeout":
		return "give it longer with --timeout; see `ccship status`"
	case "interrupted":
		return "the daemon continues without it; run the command again to see the result"
	}
	if hint := TroubleHint(code); hint != "" {
		return hint
	}
	return "see `ccship status` and the daemon's log"
}

// TroubleHint returns what to do about a kind of trouble with a server; "" when the kind is unknown.
func TroubleHint(kind string) string {
	switch kind {
	case control.CodeUnreachable:
		return "check that the server runs and that server_url is its address; nothing is lost, ccship keeps retrying"
	case "server_error":
		return "check the server's log; nothing is lost, ccship keeps retrying"
	case "busy":
		return "wait: ccship retries when the server allows it"
	case "over_quota":
		return "nothing is lost, it waits here: forget sessions with `ccship forget`, or have the limit raised"
	case control.CodeRefusedKey:
		return "`ccship-server key create --name NAME` on the server makes one; `ccship setup` asks for it"
	case "refused":
		return "check the server's log, and that server_url is the address of a conversation server"
	case "not_found":
		return "check server_url: there is no conversation API at that address"
	case "redirect":
		return "set server_url to the server's new address"
	case "protocol":
		return "check server_url: another program may answer there"
	}
	return ""
}

// SystemHint returns what to do about an error of the system; "" when only its text helps.
func SystemHint(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "make it readable and writable by this user; `ccship config` lists what is used"
	case errors.Is(err, syscall.ENOSPC):
		return "free disk space, then run the command again"
	case errors.Is(err, syscall.EROFS):
		return "name a folder that can be written with --state-dir; `ccship config` lists what is used"
	case errors.Is(err, fs.ErrNotExist):
		return "`ccship config` lists every file and folder that is used"
	}
	return ""
}

// contactTrouble says what is wrong with a server that nothing may be waiting for; "" when all are well.
func (v View) contactTrouble(s control.Status) string {
	for _, srv := range s.Servers {
		if !unwell(srv) {
			continue
		}
		who := "the server"
		if len(s.Servers) > 1 {
			who = srv.URL
		}
		return who + " " + v.silence(srv)
	}
	return ""
}

func unwell(srv control.Server) bool { return srv.State == "retrying" || srv.State == "refused" }

// silence returns what a server that is not well does, or since when it does nothing.
func (v View) silence(srv control.Server) string {
	switch {
	case srv.Kind != control.CodeUnreachable:
		return trouble(srv, "rejects what is sent")
	case srv.LastContactAt == nil:
		return "does not answer"
	}
	return "has not answered since " + v.clock(*srv.LastContactAt)
}

// clock returns a time of the day; of another day, with its date.
func (v View) clock(t time.Time) string {
	zone := v.Zone
	if zone == nil {
		zone = v.Now.Location()
	}
	t = t.In(zone)
	if t.Format(time.DateOnly) == v.Now.In(zone).Format(time.DateOnly) {
		return t.Format("15:04")
	}
	return t.Format("2006-01-02 15:04")
}

// reachable says since when nobody knows whether a server that was well still is; it never means now without an answer.
func (v View) reachable(srv control.Server) string {
	if at := srv.LastContactAt; at != nil && v.Now.Sub(*at) > control.ContactFresh {
		return "reachable " + amount.Ago(v.Now, *at)
	}
	return "reachable"
}

// lineContact returns what the line says about the server, with the age of what it knows, when nothing waits; "" when
// that is fresh.
func (v View) lineContact(s control.Status) (text string, trouble bool) {
	if s.State != "watching" || len(s.Servers) == 0 {
		return "", false
	}
	srv := s.Servers[0] // the user's own is the first
	for _, other := range s.Servers {
		if unwell(other) {
			srv = other
			break
		}
	}
	at := srv.LastContactAt
	switch {
	case unwell(srv):
		text = "server " + v.silence(srv)
		if srv.Probe != nil {
			text += ", asked " + amount.Ago(v.Now, srv.Probe.At)
		}
		return text, true
	case srv.State == "unknown":
		return "server not asked yet", false
	case at != nil && v.Now.Sub(*at) > control.ContactFresh:
		return "server answered " + amount.Ago(v.Now, *at), false
	}
	return "", false
}
