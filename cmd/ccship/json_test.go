package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// scripted is a Daemon that says what it was given.
type scripted struct {
	control.Daemon
	status control.Status
	sync   control.SyncResult
	report control.VerifyReport
	err    error // of sync and verify
}

func (s scripted) Status(context.Context) control.Status { return s.status }

func (s scripted) Sync(context.Context, control.SyncRequest) (control.SyncResult, error) {
	return s.sync, s.err
}

func (scripted) Flush(context.Context) (control.FlushResult, error) {
	return control.FlushResult{SchemaVersion: 1}, nil
}

func (s scripted) Verify(context.Context, control.VerifyRequest, func(control.VerifyProgress)) (control.VerifyReport, error) {
	return s.report, s.err
}

func (scripted) Probe(context.Context, bool) {}

func (scripted) Metrics(io.Writer) {}

// jsonHome is an environment of this process that holds nothing of the machine's.
func jsonHome(t *testing.T) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "CCSHIP_") && name != "CCSHIP_UPDATE_GOLDEN" {
			t.Setenv(name, "")
		}
	}
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "CLAUDE_CONFIG_DIR", "LC_ALL", "LC_MESSAGES", "LANG"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", "/nonexistent/me")
	t.Setenv("USERPROFILE", `C:\nonexistent\me`)
}

// listen has a daemon answer on a socket until the test ends.
func listen(t *testing.T, d control.Daemon) (socket string) {
	t.Helper()
	socket = kit.Socket(t)
	ln := kit.Try(control.Listen(socket)).Must(t)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- control.NewServer(d, slog.New(slog.DiscardHandler)).Serve(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		err := <-ended
		kit.Check(t, err == nil, "%v", err)
	})
	return socket
}

// inProcess runs a command in this process.
func inProcess(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, words bytes.Buffer
	a := &app{App: show.App{Stdout: &out, Stderr: &words, Version: "1.2.3"}, build: build{
		SchemaVersion: control.SchemaVersion, Version: "1.2.3", Commit: "0123456789ab", Go: "go1.26", OS: "linux", Arch: "amd64",
	}}
	code = a.execute(t.Context(), args)
	return code, out.String(), words.String()
}

// fullStatus has every member set.
func fullStatus() control.Status {
	s := showtest.Statuses()["trouble"]
	s.Servers[0].LastOKAt, s.Servers[0].Batches, s.Servers[0].MaxRequest = showtest.Before(time.Hour), 1, 4<<20
	s.Servers[0].LastContactAt, s.Servers[0].ContactAge = showtest.Before(50*time.Second), 50
	s.Servers[0].Probe = &control.Probe{At: *showtest.Before(8 * time.Second), Age: 8, Kind: "refused_key",
		Detail: "answered 401 Unauthorized", Hint: "put another key into the file"}
	s.Servers[0].Accepts, s.Servers[0].Items = []string{"checkpoints", "blobs"}, 12
	s.Servers[0].Unwanted, s.Servers[0].Gone = 3, 1
	s.Files.Malformed, s.Files.Masked, s.Files.Unfinished = 4, 7, 6
	s.Outbox.Stored, s.Outbox.Cap, s.Outbox.OldestAt = 500_000, 2<<30, showtest.Before(time.Minute)
	s.Watch.Unread, s.Watch.Watches, s.Watch.Limit = []string{"/b/p: permission denied"}, 17, 4096
	s.Watch.NotReadFiles = showtest.NotRead()
	s.Config, s.Pause = "/home/me/.config/ccship/config.toml", &control.Pause{Since: *showtest.Before(time.Hour), Until: showtest.After(time.Hour)}
	return s
}

// unset names the members of a document that no golden file would show; booleans are shown either way.
func unset(v reflect.Value, name string) []string {
	switch v.Kind() {
	case reflect.Bool:
		return nil
	case reflect.Pointer:
		if !v.IsNil() {
			return unset(v.Elem(), name)
		}
	case reflect.Slice:
		if v.Len() > 0 {
			return unset(v.Index(0), name+"[0]")
		}
	case reflect.Struct:
		if v.Type() != reflect.TypeFor[time.Time]() {
			var names []string
			for i := range v.NumField() {
				names = append(names, unset(v.Field(i), name+"."+v.Type().Field(i).Name)...)
			}
			return names
		}
	}
	if v.IsZero() {
		return []string{name}
	}
	return nil
}

// fullSync has every member set.
func fullSync() control.SyncResult {
	return control.SyncResult{SchemaVersion: 1, Reason: "refused", Detail: "400 Bad Request", Hint: "see its log", Lines: 20, Acknowledged: 7, Dead: 1, Excluded: 2, Withheld: 4, Waiting: 6, Resumed: true, Retired: showtest.RetiredServers()}
}

func TestJSONWhole(t *testing.T) {
	documents := []any{fullStatus(), fullSync(), showtest.VerifyReport()}
	for _, d := range fullDocuments() {
		documents = append(documents, d.document)
	}
	for _, document := range documents {
		names := unset(reflect.ValueOf(document), reflect.TypeOf(document).Name())
		kit.Check(t, len(names) == 0, "the golden document leaves out %v", names)
	}
}

// Every document that --json prints, byte for byte: programs read them.
func TestJSON(t *testing.T) {
	jsonHome(t)
	refused := &control.Error{Code: control.CodeRefusedKey, Message: "401 Unauthorized", Retryable: true}
	for _, c := range []struct {
		name string
		says control.Daemon // nil: none runs
		args []string
		code int
	}{
		{"status", scripted{status: fullStatus()}, []string{"status"}, show.ExitOK},
		{"status_not_running", nil, []string{"status"}, show.ExitNotRunning},
		{"sync", scripted{sync: control.SyncResult{SchemaVersion: 1, Done: true, Lines: 10, Acknowledged: 7, Dead: 1, Excluded: 2}}, []string{"sync", "--wait"}, show.ExitOK},
		{"sync_unfinished", scripted{sync: fullSync()}, []string{"sync", "--wait"}, show.ExitFailed},
		{"verify_equal", scripted{report: showtest.EqualReport()}, []string{"verify"}, show.ExitOK},
		{"verify_unequal", scripted{report: showtest.VerifyReport()}, []string{"verify", "a"}, show.ExitFailed},
		{"error_not_running", nil, []string{"verify"}, show.ExitNotRunning},
		{"error_no_session", scripted{report: control.VerifyReport{Equal: true, Proven: true, Dead: 3}}, []string{"verify", "nosuch"}, show.ExitFailed},
		{"error_refused_key", scripted{err: refused}, []string{"verify"}, show.ExitRefusedKey},
		{"error_usage", nil, []string{"status", "extra"}, show.ExitUsage},
	} {
		t.Run(c.name, func(t *testing.T) {
			socket := kit.Socket(t)
			if c.says != nil {
				socket = listen(t, c.says)
			}
			code, out, words := inProcess(t, append(c.args, "--json", "--socket", socket)...)
			kit.Check(t, code == c.code && words == "", "exit code %d, want %d; stderr %q", code, c.code, words)
			showtest.Golden(t, filepath.Join("json", c.name+".json"), out)
		})
	}
}

// The documents about paths and configuration, with values of every origin.
func TestJSONConfig(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("paths differ")
	}
	jsonHome(t)
	code, out, words := inProcess(t, "config", "--json")
	kit.Check(t, code == show.ExitOK && words == "", "%d %s", code, words)
	showtest.Golden(t, filepath.Join("json", "config.json"), out)
	file := filepath.Join(t.TempDir(), "config.toml")
	text := "server_url = \"https://ccship.example.org/a&b\"\nroots = [\"/a\", \"/b\"]\noutbox_cap = \"1GiB\"\n"
	kit.Must(t, os.WriteFile(file, []byte(text), 0o600))
	t.Setenv("CCSHIP_EXCLUDE_TYPES", "progress,summary")
	code, out, words = inProcess(t, "config", "--json", "--config", file, "--state-dir", "/var/lib/ccship")
	kit.Check(t, code == show.ExitOK && words == "", "%d %s %s", code, out, words)
	out = strings.ReplaceAll(out, filepath.Dir(file), "/etc/ccship") // where the file lies changes with each run
	showtest.Golden(t, filepath.Join("json", "config_given.json"), out)
	code, out, _ = inProcess(t, "config", "--json", "--log-level", "loud")
	kit.Check(t, code == show.ExitUsage, "exit code %d", code)
	showtest.Golden(t, filepath.Join("json", "error_config.json"), out)
}

// say has a daemon answer every question but the one for its status with one document.
func say(t *testing.T, document any) (socket string) {
	t.Helper()
	return answer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/status" {
			_ = json.NewEncoder(w).Encode(control.Status{SchemaVersion: 1, Running: true, PID: 1})
			return
		}
		_ = json.NewEncoder(w).Encode(document)
	})
}

// answer has a handler answer on a control socket until the test ends.
func answer(t *testing.T, handler http.HandlerFunc) (socket string) {
	t.Helper()
	socket = kit.Socket(t)
	ln := kit.Try(net.Listen("unix", socket)).Must(t)
	server := &http.Server{ReadHeaderTimeout: hung, Handler: handler}
	go func() { _ = server.Serve(ln) }()
	t.Cleanup(func() { _ = server.Close() })
	return socket
}

// spokenDocument is a document with every member set, and the command that prints it.
type spokenDocument struct {
	name     string
	args     []string
	document any
}

func fullDocuments() []spokenDocument {
	pause := &control.Pause{Since: *showtest.Before(time.Hour), Until: showtest.After(time.Hour)}
	return []spokenDocument{
		{"outbox_list", []string{"outbox", "list"}, control.OutboxList{
			SchemaVersion: 1, Outbox: *fullStatus().Outbox, Pause: pause, Servers: fullStatus().Servers, Next: 1,
			Rows: []control.OutboxRow{{Server: "http://127.0.0.1:5000", Session: "a", Path: "-p/a.jsonl", Kind: "lines", Batches: 1, Entries: 4, Bytes: 4321, Stored: 400, OldestAt: *showtest.Before(time.Minute)}},
		}},
		{"outbox_dead", []string{"outbox", "list", "--dead"}, control.DeadLetters{SchemaVersion: 1, Letters: []control.DeadLetter{{
			ID: "7-3", Server: "http://127.0.0.1:5000", Session: "a", Path: "-p/a.jsonl", Generation: 2, Line: 3, Kind: "blob", Name: "tool-results/x.txt", Entries: 1, Bytes: 1234,
			Reason: "rejected", Status: 422, Answer: `{"error":"<no>"}`, At: *showtest.Before(time.Hour),
		}}}},
		{"outbox_retry", []string{"outbox", "retry", "7-3"}, control.DeadResult{SchemaVersion: 1, Letters: 1}},
		{"outbox_drop", []string{"outbox", "drop", "--all"}, control.DeadResult{SchemaVersion: 1, Letters: 2}},
		{"outbox_drop_server", []string{"outbox", "drop", "--server", "http://old.example.org", "--yes"}, control.DropServerResult{
			SchemaVersion: 1, Server: "http://old.example.org", Rows: 2, Entries: 7, Letters: 1,
		}},
		{"pause", []string{"pause", "--for", "1h"}, control.PauseState{SchemaVersion: 1, Paused: true, Was: true, Pause: pause}},
		{"exclude_list", []string{"exclude"}, control.Excludes{
			SchemaVersion: 1, Config: "/c/config.toml", Origin: "file", Patterns: []control.Exclusion{{Pattern: "/clients/*", Transcripts: 3}},
			Others: []control.Reason{{Why: "excluded by /x/.ccshipignore", Transcripts: 1}},
		}},
		{"checkpoint_list", []string{"checkpoint", "list", "--session", "a"}, control.Checkpoints{
			SchemaVersion: 1, Next: 1, Checkpoints: []control.Checkpoint{showtest.Checkpoint()},
		}},
		{"checkpoint_show", []string{"checkpoint", "show", "cp-0123456789ab"}, control.CheckpointAnswer{SchemaVersion: 1, Checkpoint: showtest.Checkpoint()}},
		{"checkpoint_show", []string{"checkpoint", "create", "--session", "a", "--trigger", "pre_heavy"}, control.CheckpointAnswer{SchemaVersion: 1, Checkpoint: showtest.Checkpoint()}},
		{"checkpoint_budget", []string{"checkpoint", "budget"}, showtest.Budgets()},
		{"link_list", []string{"link", "list", "--session", "a"}, fullDocumentList()},
		{"link_list", []string{"link", "add", "docs/spec.md", "--session", "a"}, fullDocumentList()},
		{"link_list", []string{"link", "rm", "docs/spec.md", "--session", "a"}, fullDocumentList()},
	}
}

// Every document of the outbox, the pause and the settings, byte for byte.
func TestJSONOutbox(t *testing.T) {
	jsonHome(t)
	documents := append(fullDocuments(), spokenDocument{"unpause", []string{"unpause"}, control.PauseState{SchemaVersion: 1}})
	for _, d := range documents {
		t.Run(d.name, func(t *testing.T) {
			code, out, words := inProcess(t, append(d.args, "--json", "--socket", say(t, d.document))...)
			kit.Check(t, code == show.ExitOK && words == "", "exit code %d; stderr %q", code, words)
			showtest.Golden(t, filepath.Join("json", d.name+".json"), out)
		})
	}
}

// Without a daemon, and with an error of its, each of them says so in the same terms.
func TestJSONOutboxFails(t *testing.T) {
	jsonHome(t)
	for _, d := range fullDocuments() {
		if d.name == "exclude_list" {
			continue // the configuration answers then
		}
		code, out, words := inProcess(t, append(d.args, "--json", "--socket", kit.Socket(t))...)
		kit.Check(t, code == show.ExitNotRunning && words == "", "%v: exit code %d; stderr %q", d.args, code, words)
		showtest.Golden(t, filepath.Join("json", "error_not_running.json"), out)
	}
}
