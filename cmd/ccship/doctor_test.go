package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/daemon"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

func TestDoctorJSON(t *testing.T) {
	var out strings.Builder
	a := &app{App: show.App{Stdout: &out}}
	r := showtest.DoctorReports()["fixed"]
	kit.Must(t, a.PrintJSON(r))
	showtest.Golden(t, filepath.Join("json", "doctor.json"), out.String())
	for _, part := range []any{r.Findings[0], r.Findings[1], r.Fixes[1]} {
		for _, name := range unset(reflect.ValueOf(part), "") {
			kit.Check(t, name == ".action" || name == ".Detail", "the golden document leaves out %s of %+v", name, part)
		}
	}
}

// Every line about something that went wrong is followed by what to do about it.
func TestErrorHints(t *testing.T) {
	errs := []error{
		errors.New("it broke"),
		fmt.Errorf("open state: %w", &fs.PathError{Op: "open", Path: "/s/state.db", Err: fs.ErrPermission}),
		fmt.Errorf("write state: %w", syscall.ENOSPC),
		fmt.Errorf("open log: %w", &fs.PathError{Op: "open", Path: "/s/log", Err: syscall.EROFS}),
		fmt.Errorf("open state: %w", &fs.PathError{Op: "open", Path: "/s/state.db", Err: fs.ErrNotExist}),
		fmt.Errorf("ask daemon: %w", context.Canceled),
		daemon.ErrAlreadyRunning,
		&config.Error{Message: "a mistake"},
		&config.Error{Message: "a mistake", Hint: "its own hint"},
		&control.Error{Code: control.CodeUnreachable, Message: "of a known kind", Hint: "its own hint"},
	}
	for _, code := range []string{
		control.CodeNotRunning, control.CodeNoAnswer, control.CodeUnreachable, control.CodeRefusedKey, control.CodeUsage,
		control.CodeConfig, control.CodeInUse, control.CodeSocket, control.CodeFailed, "forbidden", "",
	} {
		errs = append(errs, &control.Error{Code: code, Message: "code " + code})
	}
	for _, reason := range []string{"timeout", "unreachable", "refused_key", "refused", "no_server", "full", ""} {
		errs = append(errs, show.Unfinished(control.SyncResult{Reason: reason, Detail: "a detail"}))
	}
	var b bytes.Buffer
	for _, err := range errs {
		e := show.Describe(err)
		kit.Check(t, e.Hint != "", "%v: no hint", err)
		show.PrintError(&b, e)
		fmt.Fprintf(&b, "exit code %d\n\n", show.ExitCode(e))
	}
	text := b.String()
	for _, word := range []string{syscall.ENOSPC.Error(), syscall.EROFS.Error()} {
		text = strings.ReplaceAll(text, word, "SYSTEM") // each system has words of its own
	}
	showtest.Golden(t, "errors.txt", text)
}

// What cannot be meant is a mistake of the caller's, and no daemon is asked.
func TestCheckpointMistakes(t *testing.T) {
	jsonHome(t)
	t.Setenv("CLAUDE_CODE_SESSION_ID", "")
	for _, args := range [][]string{
		{"list", "--limit", "0"}, {"list", "--offset", "-1"}, {"list", "extra"}, {"show"}, {"show", "a", "b"}, {"show", "cp-1", "--session", "a"},
		{"create", "a", "b"}, {"create", "a", "--session", "b"}, {"budget", "--session", "a", "--model", "b"}, {"budget", "--set", "5000"}, {"budget", "--unset"},
		{"budget", "--model", "m", "--set", "0"}, {"budget", "--model", "m", "--set", "many"}, {"budget", "--model", "m", "--set", "5000", "--unset"},
	} {
		code, out, words := inProcess(t, append([]string{"checkpoint"}, args...)...)
		kit.Check(t, code == show.ExitUsage && out == "" && strings.HasPrefix(words, "ccship: "),
			"%v: exit code %d, stdout %q, stderr %q", args, code, out, words)
	}
}

// The newest checkpoint has no id that one could know.
func TestCheckpointLatest(t *testing.T) {
	jsonHome(t)
	socket := say(t, control.Checkpoints{SchemaVersion: 1, Checkpoints: []control.Checkpoint{showtest.Checkpoint()}})
	code, out, words := inProcess(t, "checkpoint", "show", "latest", "--socket", socket)
	kit.Check(t, code == show.ExitOK && strings.Contains(out, "cp-0123456789ab"), "exit code %d, stdout %q, stderr %q", code, out, words)
	socket = say(t, control.Checkpoints{SchemaVersion: 1, Checkpoints: []control.Checkpoint{}})
	code, _, words = inProcess(t, "checkpoint", "show", "latest", "--session", "a", "--socket", socket)
	kit.Check(t, code == show.ExitFailed && strings.Contains(words, "there is no checkpoint yet"), "exit code %d, stderr %q", code, words)
	// Claude Code names the session to what it runs.
	t.Setenv("CLAUDE_CODE_SESSION_ID", "3f2a")
	socket = say(t, control.CheckpointAnswer{Checkpoint: showtest.Checkpoint()})
	code, out, words = inProcess(t, "checkpoint", "create", "--socket", socket)
	kit.Check(t, code == show.ExitOK && strings.Contains(out, "cp-0123456789ab"), "exit code %d, stdout %q, stderr %q", code, out, words)
	socket = say(t, control.CheckpointAnswer{Checkpoint: showtest.Checkpoint()})
	code, out, words = inProcess(t, "checkpoint", "create", "3f", "--socket", socket)
	kit.Check(t, code == show.ExitOK && strings.Contains(out, "cp-0123456789ab"), "with the beginning of an id: exit code %d, stdout %q, stderr %q", code, out, words)
}

// talkative is a daemon with one session's messages.
type talkative struct {
	scripted
	messages control.Messages
	asked    *control.MessagesQuery
	err      error
}

func (d talkative) Messages(_ context.Context, q control.MessagesQuery) (control.Messages, error) {
	if d.asked != nil {
		*d.asked = q
	}
	return d.messages, d.err
}

func (d talkative) ClearMessages(context.Context, string) (control.ClearResult, error) {
	return control.ClearResult{SchemaVersion: control.SchemaVersion, Session: "s", Cleared: 2}, d.err
}

func TestMessagesCommand(t *testing.T) {
	jsonHome(t)
	t.Setenv("TZ", "UTC")
	var asked control.MessagesQuery
	socket := listen(t, talkative{messages: showtest.Messages(), asked: &asked})
	code, out, words := inProcess(t, "messages", "3f2a", "--socket", socket, "--limit", "5", "--offset", "2")
	kit.Check(t, code == 0 && strings.Contains(out, "cart.go") && asked.Session == "3f2a" && asked.Limit == 5 && asked.Offset == 2,
		"%d %q %q %+v", code, out, words, asked)
	_, out, _ = inProcess(t, "messages", "3f2a", "--socket", socket, "--json")
	showtest.Golden(t, filepath.Join("json", "messages.json"), out)
	kit.Check(t, asked.Limit == 0, "asked %+v", asked)
	_, out, _ = inProcess(t, "messages", "3f2a", "--socket", socket, "--clear", "--json")
	showtest.Golden(t, filepath.Join("json", "messages_clear.json"), out)
	for _, args := range [][]string{{"--limit", "-1"}, {"--offset", "-1"}, {"--follow", "--clear"}, {"--follow", "--offset", "3"}} {
		code, _, words := inProcess(t, append([]string{"messages", "3f2a", "--socket", socket}, args...)...)
		kit.Check(t, code == 2 && strings.Count(words, "\n") <= 2, "%v: %d %q", args, code, words)
	}
	unknown := listen(t, talkative{err: &control.Error{Code: control.CodeNoSession, Message: "there is no session x", Hint: "h"}})
	for _, args := range [][]string{nil, {"--follow"}, {"--clear"}} {
		code, _, words := inProcess(t, append([]string{"messages", "x", "--socket", unknown}, args...)...)
		kit.Check(t, code == 1 && strings.Contains(words, "there is no session x"), "%v: %d %q", args, code, words)
	}
}

// fullDocumentList has every member set.
func fullDocumentList() control.Documents {
	return control.Documents{SchemaVersion: 1, Session: "a", Cwd: "/home/kim/shop", Documents: []control.Document{
		{Path: "docs/<spec>.md", AddedAt: *showtest.Before(time.Hour), ChangedAt: *showtest.Before(time.Minute), Version: 3, Size: 4321, SHA256: strings.Repeat("ab", 32), Deleted: true, TooLarge: true, Problem: "it stays on this machine: excluded"},
		{Path: "docs/설계.md", AddedAt: *showtest.Before(time.Minute), Version: 2},
	}}
}

// librarian is a daemon that notes what is asked of it.
type librarian struct {
	control.Daemon
	sessions []control.Session

	mu   sync.Mutex
	reqs []control.DocumentRequest
}

func (*librarian) Status(context.Context) control.Status {
	return control.Status{SchemaVersion: 1, Running: true}
}

func (l *librarian) Sessions(_ context.Context, q control.SessionsQuery) (control.Sessions, error) {
	a := control.Sessions{SchemaVersion: 1}
	if q.Offset < len(l.sessions) {
		a.Sessions, a.Next = l.sessions[q.Offset:q.Offset+1], q.Offset+1
	}
	return a, nil
}

func (l *librarian) LinkDocument(_ context.Context, req control.DocumentRequest) (control.Documents, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if req.Path == "bad" {
		return control.Documents{}, &control.Error{Code: control.CodeDocument, Message: "bad is a directory", Hint: "link files inside it instead"}
	}
	l.reqs = append(l.reqs, req)
	return control.Documents{SchemaVersion: 1, Session: req.Session}, nil
}

func (l *librarian) Documents(_ context.Context, session string) (control.Documents, error) {
	d := fullDocumentList()
	d.Session = session
	return d, nil
}

// TestLinkSession takes the session that is meant: named, of the environment, or the newest around.
func TestLinkSession(t *testing.T) {
	jsonHome(t)
	here := kit.Try(filepath.EvalSymlinks(t.TempDir())).Must(t)
	kit.Must(t, os.MkdirAll(filepath.Join(here, "shop", "docs"), 0o700))
	t.Chdir(filepath.Join(here, "shop", "docs"))
	l := &librarian{sessions: []control.Session{
		{Session: "elsewhere", Cwd: filepath.Join(here, "other")}, {Session: "beside", Cwd: filepath.Join(here, "sh")},
		{Session: "unknown"}, {Session: "below", Cwd: filepath.Join(here, "shop", "docs", "x")},
		{Session: "newest", Cwd: filepath.Join(here, "shop")}, {Session: "older", Cwd: filepath.Join(here, "shop", "docs")},
	}}
	socket := listen(t, l)
	for _, test := range []struct {
		env, want string
		args      []string
		words     bool
	}{
		{"", "named", []string{"--session", "named"}, false},
		{"env", "named", []string{"--session", "named"}, false},
		{"env", "env", nil, false},
		{"", "newest", nil, true},
	} {
		t.Setenv("CLAUDE_CODE_SESSION_ID", test.env)
		l.reqs = nil
		code, out, words := inProcess(t, append([]string{"link", "add", "a.md", "b.md", "--socket", socket}, test.args...)...)
		kit.Check(t, code == show.ExitOK && out == "" && len(l.reqs) == 2 && l.reqs[0].Session == test.want &&
			l.reqs[1].Path == "b.md" && l.reqs[0].Base == filepath.Join(here, "shop", "docs") &&
			strings.Contains(words, "newest") == test.words,
			"%q %v: exit code %d, %+v\n%s", test.env, test.args, code, l.reqs, words)
	}
	l.sessions = l.sessions[:4]
	if code, _, words := inProcess(t, "link", "list", "--socket", socket); code != show.ExitFailed || !strings.Contains(words, "no session was started in") {
		t.Errorf("no session around: exit code %d\n%s", code, words)
	}
	l.reqs = nil
	code, _, words := inProcess(t, "link", "add", "a.md", "bad", "b.md", "--session", "a", "--socket", socket)
	kit.Check(t, code == show.ExitFailed && len(l.reqs) == 1 && strings.Contains(words, "bad is a directory") && strings.Contains(words, "link files inside it instead"),
		"a refusal: exit code %d, %+v\n%s", code, l.reqs, words)
	l.reqs = nil // what runs here has no terminal, like Claude's shell or a script
	code, _, words = inProcess(t, "link", "add", ".env", "--allow-secret", "--session", "a", "--socket", socket)
	kit.Check(t, code == show.ExitUsage && len(l.reqs) == 0 && strings.Contains(words, "a person at a terminal"),
		"--allow-secret without a person: exit code %d, %+v\n%s", code, l.reqs, words)
	code, _, words = inProcess(t, "link", "add")
	kit.Check(t, code == show.ExitUsage && words != "", "nothing to link: exit code %d", code)
}
