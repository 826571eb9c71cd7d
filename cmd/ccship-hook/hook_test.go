package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

const (
	initText   = "[Session started]\n- Session: \"shop\" <1> & 장바구니"
	noticeText = "💾 [ccship] Automatic checkpoint made"
)

// hung is how long something may take before a test calls it hung. It is no measure of speed.
const hung = 2 * time.Minute

// hookInputs are what Claude Code writes to a hook, by version and event.
const (
	newInput   = `{"session_id":"s-1","prompt_id":"p","transcript_path":"/x","cwd":"/home/kim/shop","hook_event_name":"X","tool_input":{"session_id":"no"}}`
	oldInput   = `{"session_id":"s-1","transcript_path":"/x","cwd":"/home/kim/shop","hook_event_name":"X"}`
	agentInput = `{"session_id":"s-1","prompt_id":"p","cwd":"/home/kim/shop","agent_id":"a0b1","hook_event_name":"X"}`
)

// patientHook makes this binary a hook that has all the time it needs: on a busy machine the time of a real one is up
// before it is answered.
const patientHook = "CCSHIP_TEST_PATIENT_HOOK"

func TestMain(m *testing.M) {
	if os.Getenv(patientHook) != "" {
		run(int(10 * time.Minute / beatTime))
		os.Exit(0)
	}
	code := m.Run()
	if builds.dir != "" {
		_ = os.RemoveAll(builds.dir)
	}
	os.Exit(code)
}

// builds is the program as it is released, built once per test process: this test binary takes longer to start than a
// hook has.
var builds struct {
	once sync.Once
	dir  string
	path string
	err  error
}

func released(t testing.TB) string {
	t.Helper()
	builds.once.Do(func() {
		if builds.dir, builds.err = os.MkdirTemp("", "ccship-hook"); builds.err != nil {
			return
		}
		builds.path = filepath.Join(builds.dir, "ccship-hook.exe")
		out, err := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", builds.path, ".").CombinedOutput()
		if err != nil {
			builds.err = fmt.Errorf("build: %w\n%s", err, out)
		}
	})
	kit.Must(t, builds.err)
	return builds.path
}

// patient is a command that runs one hook with all the time it needs.
func patient(t *testing.T, event string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], event)
	cmd.Env = append([]string{patientHook + "=1"}, env...)
	return cmd
}

// answering is the socket of a daemon that is only a handler.
func answering(t testing.TB, answer http.HandlerFunc) string { t.Helper(); return serving(t, answer) }

func serving(t testing.TB, answer http.Handler) string {
	t.Helper()
	socket := kit.Socket(t)
	ln := kit.Try(net.Listen("unix", socket)).Must(t)
	server := &http.Server{
		Handler: answer, ReadHeaderTimeout: time.Minute,
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, connection{}, new(int))
		},
	}
	go func() { _ = server.Serve(ln) }()
	t.Cleanup(func() { _ = server.Close() })
	return socket
}

// telling is a daemon that has something to say to session s-1 in /home/kim/shop.
func telling(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/v1/init" && r.URL.Query().Get("session") == "s-1" && r.URL.Query().Get("cwd") == "/home/kim/shop":
		_ = json.NewEncoder(w).Encode(control.Init{SchemaVersion: 1, Text: initText})
	case r.URL.Path == "/v1/pending":
		var req control.PendingRequest
		if json.NewDecoder(r.Body).Decode(&req) == nil && req.Session == "s-1" {
			_ = json.NewEncoder(w).Encode(control.Pending{SchemaVersion: 1, Text: noticeText, Notices: 1})
		}
	default:
		w.WriteHeader(http.StatusTeapot)
	}
}

func quiet(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, `{"schema_version":1,"text":""}`)
}

// silence never answers, as a daemon does that was stopped.
func silence(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// hookRun runs one hook of the released program, with the time that a hook has.
func hookRun(t *testing.T, socket string, stdin io.Reader, env []string, event string) string {
	t.Helper()
	return outputOf(t, exec.CommandContext(t.Context(), released(t), event), socket, stdin, env)
}

// hookTells runs one hook that waits until it is answered.
func hookTells(t *testing.T, socket string, stdin io.Reader, env []string, event string) string {
	t.Helper()
	return strings.TrimSuffix(outputOf(t, patient(t, event), socket, stdin, env), "\n")
}

// outputOf runs one hook and returns what it printed. The hook must succeed and say nothing on stderr.
func outputOf(t *testing.T, cmd *exec.Cmd, socket string, stdin io.Reader, env []string) string {
	t.Helper()
	home := t.TempDir()
	cmd.Env = append(append(cmd.Env, "HOME="+home, "USERPROFILE="+home, "CCSHIP_SOCKET="+socket), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if f, ok := stdin.(*os.File); ok {
		cmd.Stdin = f
	} else {
		pipe := kit.Try(cmd.StdinPipe()).Must(t)
		go func() {
			_, _ = io.Copy(pipe, stdin) // the hook need not read all of it
			_ = pipe.Close()
		}()
	}
	err := cmd.Run()
	kit.Check(t, err == nil && stderr.Len() == 0, "hook %s: %v, stderr %q", cmd.Args, err, stderr.String())
	return stdout.String()
}

func TestHookTells(t *testing.T) {
	socket := answering(t, telling)
	for _, c := range []struct{ event, input, want string }{
		{"session-start", newInput, `{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"[Session started]\n- Session: \"shop\" <1> & 장바구니"}}`},
		{"session-start", oldInput, `{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"[Session started]\n- Session: \"shop\" <1> & 장바구니"}}`},
		{"user-prompt-submit", oldInput, `{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"` + noticeText + `"}}`},
		{"post-tool-use", oldInput, `{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"` + noticeText + `"}}`},
		{"pre-tool-use", newInput, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","additionalContext":"` + noticeText + `"}}`},
		{"pre-tool-use", oldInput, ""}, // a version that would drop it
		{"post-tool-use", agentInput, ""},
		{"session-start", `{"session_id":"other","cwd":"/home/kim/shop"}`, ""},
		{"stop", newInput, ""},
		{"", newInput, ""},
	} {
		got := hookTells(t, socket, strings.NewReader(c.input), nil, c.event)
		kit.Check(t, got == c.want, "%s with %s prints %q, want %q", c.event, c.input, got, c.want)
	}
	kit.Check(t, hookTells(t, socket, strings.NewReader(oldInput), []string{"CLAUDE_CODE_SESSION_ID=s-1"}, "pre-tool-use") != "",
		"a version that says its session in the environment is told nothing before a tool")
}

// late is input that is written later than a hook may take, in two parts.
type late struct{ text []string }

func (l *late) Read(p []byte) (int, error) {
	if len(l.text) == 0 {
		return 0, io.EOF
	}
	<-time.After(150 * time.Millisecond) // what a busy machine does
	n := copy(p, l.text[0])
	l.text = l.text[1:]
	return n, nil
}

// TestHookOnBusyMachine: a hook's time begins with its input, and one that delays no turn waits for a slow daemon.
func TestHookOnBusyMachine(t *testing.T) {
	slowly := func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(200 * time.Millisecond):
			telling(w, r)
		}
	}
	socket := answering(t, slowly)
	for _, c := range []struct{ event, input, want string }{
		{"session-start", oldInput, "Session started"}, {"post-tool-use", newInput, noticeText}, {"user-prompt-submit", newInput, noticeText},
	} {
		got := ""
		for tries := 0; tries < 20 && !strings.Contains(got, c.want); tries++ { // this machine may take longer than a hook
			got = hookRun(t, socket, &late{[]string{c.input[:20], c.input[20:]}}, nil, c.event)
		}
		kit.Check(t, strings.Contains(got, c.want), "%s prints %q", c.event, got)
	}
}

// TestHookSaysNothing: whatever is wrong, a hook ends by itself with nothing said.
func TestHookSaysNothing(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "stale.sock")
	kit.Must(t, os.WriteFile(stale, nil, 0o600))
	for _, c := range []struct {
		name   string
		socket string
	}{
		{"no daemon", filepath.Join(dir, "none.sock")},
		{"no socket", stale},
		{"a path too long", filepath.Join(dir, strings.Repeat("x", 200))},
		{"a daemon that never answers", answering(t, silence)},
		{"nothing to say", answering(t, quiet)},
		{"an older daemon", answering(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"code":"not_found","message":"there is no /v1/init"}`)
		})},
		{"an answer without end", answering(t, func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, `{"text":"`+strings.Repeat("x", 1<<16)); err != nil {
					return
				}
			}
		})},
		{"an answer cut off", answering(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"schema_version":1,"text":"half`)
		})},
		{"another program", answering(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") })},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // a hook spends its time waiting
			for event := range events() {
				kit.Equal(t, fmt.Sprintf("%s prints", event), hookRun(t, c.socket, strings.NewReader(newInput), nil, event), "")
			}
		})
	}
}

// endless is the letter x for ever.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestHookHostileInput(t *testing.T) {
	socket := answering(t, telling)
	open, hold, err := os.Pipe() // nobody writes, nobody closes
	kit.Must(t, err)
	defer open.Close()
	defer hold.Close()
	for _, c := range []struct {
		name  string
		stdin io.Reader
	}{
		{"nothing", strings.NewReader("")},
		{"no JSON", strings.NewReader("\x00\xff\x00")},
		{"a list", strings.NewReader(`["session_id","s-1"]`)},
		{"cut off", strings.NewReader(`{"session_id":"s-`)},
		{"another kind of id", strings.NewReader(`{"session_id":["s-1"],"cwd":"/home/kim/shop"}`)},
		{"deep", strings.NewReader(`{"a":` + strings.Repeat("[", 60000))},
		{"never written", open},
		{"without end", io.MultiReader(strings.NewReader(`{"a":"`), endless{})},
		{"the id behind too much", strings.NewReader(`{"a":"` + strings.Repeat("x", maxHead) + `","session_id":"s-1","cwd":"/home/kim/shop"}`)},
	} {
		kit.Equal(t, fmt.Sprintf("%s: prints", c.name), hookRun(t, socket, c.stdin, nil, "session-start"), "")
	}
	large := io.MultiReader(strings.NewReader(strings.TrimSuffix(newInput, "}")+`,"tool_response":"`), io.LimitReader(endless{}, 1<<20), strings.NewReader(`"}`))
	got := hookTells(t, socket, large, nil, "session-start")
	kit.Check(t, strings.Contains(got, "Session started"), "a large input behind what counts: prints %q", got)
}

// TestHookHostilePlace: no home, a broken configuration, and nobody who reads what is printed.
func TestHookHostilePlace(t *testing.T) {
	socket := answering(t, telling)
	broken := filepath.Join(t.TempDir(), "config.toml")
	kit.Must(t, os.WriteFile(broken, []byte("roots = ["), 0o600))
	for _, env := range [][]string{{"HOME=", "USERPROFILE="}, {"CCSHIP_CONFIG=" + broken}, {"CCSHIP_CONFIG=" + t.TempDir()}} {
		_ = hookRun(t, socket, strings.NewReader(newInput), env, "session-start") // it must only end well
	}
	read, write, err := os.Pipe()
	kit.Must(t, err)
	kit.Must(t, read.Close())
	defer write.Close()
	cmd := exec.CommandContext(t.Context(), released(t), "session-start")
	cmd.Env = []string{"HOME=" + t.TempDir(), "CCSHIP_SOCKET=" + socket}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(newInput), write, write
	kit.Err(t, "nobody reads", nil)(cmd.Run())
}

// TestHookFindsDaemon: a service that is gone leaves its socket behind; the one that runs is asked.
func TestHookFindsDaemon(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, ".local", "state", "ccship")
	kit.Must(t, os.MkdirAll(dir, 0o700))
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(dir, "stale")})
	if err != nil {
		t.Skip(err) // the folder's name is too long for a socket here
	}
	stale.SetUnlinkOnClose(false)
	kit.Must(t, errors.Join(stale.Close(), os.Rename(filepath.Join(dir, "stale"), filepath.Join(dir, "ccship.sock")), os.Mkdir(filepath.Join(dir, "up"), 0o700)))
	if err := os.Symlink(answering(t, telling), filepath.Join(dir, "up", "ccship.sock")); err != nil {
		t.Skip(err)
	}
	runtime := t.TempDir()
	cmd := patient(t, "post-tool-use", "HOME="+home, "XDG_RUNTIME_DIR="+runtime)
	cmd.Stdin = strings.NewReader(newInput)
	out, err := cmd.Output()
	kit.Check(t, err == nil && strings.Contains(string(out), noticeText), "it prints %q, %v", out, err)
}

// TestHookReadsAll: Claude Code writes what a tool answered, of any size, and nothing of it may fail.
func TestHookReadsAll(t *testing.T) {
	cmd := patient(t, "post-tool-use", "HOME="+t.TempDir(), "CCSHIP_SOCKET="+answering(t, quiet))
	pipe := kit.Try(cmd.StdinPipe()).Must(t)
	kit.Must(t, cmd.Start())
	_, err := io.Copy(pipe, io.MultiReader(strings.NewReader(newInput), io.LimitReader(endless{}, 1<<20)))
	kit.Check(t, err == nil, "a megabyte cannot be written to a hook: %v", err)
	_ = pipe.Close() // what counts is whether all could be written
	kit.Must(t, cmd.Wait())
}
