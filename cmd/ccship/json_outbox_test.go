package main

import (
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

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
