package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

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
