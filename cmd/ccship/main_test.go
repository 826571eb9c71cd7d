package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

// hung is how long something may take before a test calls it hung. It is no measure of speed: a busy machine must not
// reach it.
const hung = 5 * time.Minute

// TestMain lets this binary be every program the tests run: ccship itself, and what it meets in them.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"ccship":        func() { os.Exit(command()) },
		"ccship-server": fakeServer,
		"fake-daemon":   fakeDaemon,
		"systemctl":     kit.FakeSystemctl,
		"journalctl":    kit.FakeJournalctl,
		"loginctl":      kit.FakeLoginctl,
	})
}

// TestHelpGroups: every command is in a group of the help.
func TestHelpGroups(t *testing.T) {
	a := app{}
	for _, c := range a.root().Commands() {
		kit.Check(t, c.GroupID != "" || c.Hidden, "%q is in no group", c.Name())
	}
}

// TestFlagWords: what a flag takes is one word, neither the flag's own name nor a type of Go.
func TestFlagWords(t *testing.T) {
	a := app{}
	showtest.FlagWords(t, a.root())
}

// TestScripts runs the command line against testdata/script, one home a script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           filepath.Join("testdata", "script"),
		Condition:     func(name string) (bool, error) { return name == "root" && os.Geteuid() == 0, nil },
		UpdateScripts: os.Getenv("CCSHIP_UPDATE_GOLDEN") != "",
		Setup:         scriptHome,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"eventually": eventually,
			"exitcode":   exitcode,
			"asnobody":   asNobody,
			"until":      until,
			"hangup":     hangup,
			"unreached":  unreached,
		},
	})
}

// scriptHome gives a script a home folder of its own.
func scriptHome(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	for _, name := range []string{"HOME", "USERPROFILE"} {
		env.Setenv(name, home)
	}
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "CLAUDE_CONFIG_DIR", "SUDO_USER"} {
		env.Setenv(name, "")
	}
	return os.MkdirAll(home, 0o700)
}

// eventually runs a program again and again until it succeeds.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: eventually PROGRAM ARGS…")
	}
	until(ts, false, append([]string{""}, args...))
}

// until runs a program again and again until what it prints matches.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until REGEXP PROGRAM ARGS…")
	}
	is := regexp.MustCompile(args[0])
	var err error
	if !kit.Within(hung, func() bool {
		err = ts.Exec(args[1], args[2:]...)
		return err == nil && is.MatchString(ts.ReadFile("stdout"))
	}) {
		ts.Fatalf("%v: never %q, at last %v", args[1:], args[0], err)
	}
}

// hangup sends SIGHUP to the daemon that answers.
func hangup(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: hangup FLAGS…")
	}
	ts.Check(ts.Exec("ccship", append([]string{"status", "--json"}, args...)...))
	var status control.Status
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &status))
	daemon, err := os.FindProcess(status.PID)
	ts.Check(err)
	ts.Check(daemon.Signal(syscall.SIGHUP))
}

// unreached runs every verb that needs the daemon, for people and with --json, and wants the same exit code and word.
func unreached(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: unreached CODE WORDS [VERB…]")
	}
	verbs := []string{
		"status", "sync", "verify", "pause", "unpause", "outbox list", "outbox list --dead", "outbox retry 1-1", "outbox drop --all",
		"forget 3f2a9c01 --yes",
	}
	if len(args) > 2 {
		verbs = args[2:]
	}
	for _, verb := range verbs {
		for _, flags := range []string{"", " --json"} {
			exitcode(ts, false, append([]string{args[0], "ccship"}, strings.Fields(verb+flags)...))
			out, words := ts.ReadFile("stdout"), ts.ReadFile("stderr")
			switch {
			case verb+flags == "status --json" && args[0] == "3":
				if out != `{"schema_version":1,"running":false}`+"\n" || words != "" {
					ts.Fatalf("status --json: %q %q", out, words)
				}
			case flags == "" && (out != "" || !strings.Contains(words, args[1]) || !strings.Contains(words, "\nhint: ") || strings.Count(words, "\n") != 2):
				ts.Fatalf("%s: %q %q, want a line with %q and a hint", verb, out, words, args[1])
			case flags != "" && (words != "" || !strings.Contains(out, `"hint":"`) || !strings.Contains(out, strings.TrimPrefix(args[1], "ccship: "))):
				ts.Fatalf("%s --json: %q %q, want a document with %q", verb, out, words, args[1])
			}
		}
	}
}

// exitcode runs a program and compares its exit code.
func exitcode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode CODE PROGRAM ARGS…")
	}
	got := "exit status 0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		got = err.Error()
	}
	if got != "exit status "+args[0] {
		ts.Fatalf("%v: %s, want exit status %s", args[1:], got, args[0])
	}
}

// fakeDaemon is the program fake-daemon SOCKET: it answers on a control socket until it is stopped. With a second
// argument it never answers, as a daemon does that was stopped (SIGSTOP): the kernel goes on connecting callers.
func fakeDaemon() {
	ctx, stop := show.UntilSignal(context.Background())
	ln, err := control.Listen(os.Args[1])
	if err == nil && len(os.Args) > 2 {
		<-ctx.Done()
	} else if err == nil {
		err = control.NewServer(newActor(), slog.New(slog.DiscardHandler)).Serve(ctx, ln)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// actor is a Daemon that plays what the request asks for: a sync by its time-out, a verify by its session.
type actor struct {
	control.Daemon
	stage *stage
}

func (a actor) Status(context.Context) control.Status {
	return a.paused(control.Status{
		SchemaVersion: 1, Running: true, PID: 4711, State: "watching",
		Servers: []control.Server{{URL: "http://127.0.0.1:5000", State: "ok", Protocol: "ccship"}},
		Files:   &control.Files{Tracked: 3, Sessions: 2, Bytes: 1234, ReadBytes: 1234, Lines: 56},
		Outbox:  &control.Outbox{}, Sent: &control.Sent{Entries: 56},
	})
}

func (actor) Sync(_ context.Context, req control.SyncRequest) (control.SyncResult, error) {
	r := control.SyncResult{Lines: 10, Acknowledged: 7, Waiting: 3}
	switch req.Timeout {
	case "1s":
		r.Reason, r.Detail = "timeout", "the time limit has passed"
	case "2s":
		r.Reason, r.Detail = "no_server", "no server is set"
	case "3s":
		r = control.SyncResult{Done: true, Resumed: true}
	case "6s":
		r.Reason, r.Detail = "paused", "paused by the user"
	case "4s":
		r.Reason, r.Detail = "unreachable", "connection refused"
	case "5s":
		r.Reason, r.Detail = "refused_key", "401 Unauthorized"
	default:
		r = control.SyncResult{Done: true, Lines: 10, Acknowledged: 7, Dead: 1, Excluded: 2}
	}
	return r, nil
}

func (actor) Verify(_ context.Context, req control.VerifyRequest, progress func(control.VerifyProgress)) (control.VerifyReport, error) {
	progress(control.VerifyProgress{Files: 1, FilesTotal: 2, Bytes: 500, BytesTotal: 1234})
	r := control.VerifyReport{
		Equal: true, Proven: true, Files: 2, Lines: 48211, Bytes: 61_200_000,
		Transcripts: []control.FileReport{{SessionID: "a", Path: "/p/a.jsonl", Server: "http://127.0.0.1:5000", Equal: true}},
	}
	if req.Deep {
		r.Deep = &control.DeepReport{Past: control.DeepCount{Generations: 3, Lines: 40, Bytes: 4000}, Why: []control.StoredReason{{Why: "of an earlier state file", Generations: 2}}}
	}
	switch req.Session {
	case "nobody":
		return control.VerifyReport{Equal: true, Proven: true}, nil
	case "unreachable":
		return r, &control.Error{Code: control.CodeUnreachable, Message: "connection refused", Hint: "`ccship status` shows what is wrong"}
	case "refused":
		return r, &control.Error{Code: control.CodeRefusedKey, Message: "401 Unauthorized"}
	case "plain":
		r.Equal, r.Proven = false, false
		r.Withheld, r.Vanished = 4, 1
		r.Findings = []control.VerifyFinding{{Kind: "withheld", Count: 4, Text: "4 lines withheld from a plain server", Fix: "`ccship config server_url URL`"}}
	case "unequal":
		r.Equal = false
		r.Differences = []control.FileDifference{{
			SessionID: "a", Path: "/p/a.jsonl", Generation: 2,
			Missing: []control.Range{{First: 3, Last: 5}, {First: 9, Last: 9}}, Differ: []control.Range{{First: 1, Last: 1}},
		}}
		r.Findings = []control.VerifyFinding{{Kind: "differences", Count: 1, Text: "1 difference between disk and server", Fix: "`ccship verify --repair` sends what the server lacks"}}
		if req.Repair {
			r.Equal, r.Differences, r.Findings = true, nil, nil
			r.Repaired = &control.ResendResult{SchemaVersion: 1, Transcripts: 1, Lines: 7, Bytes: 700, Resent: []control.ResentTranscript{{SessionID: "a", Path: "/p/a.jsonl", From: 3, Lines: 7, Generation: 3}}}
		}
	}
	return r, nil
}

func (actor) Probe(context.Context, bool) {}

func (actor) Resend(_ context.Context, req control.ResendRequest) (control.ResendResult, error) {
	if req.Session == "nobody" {
		return control.ResendResult{}, control.Usage("there is no session nobody", "`ccship list` lists them")
	}
	return control.ResendResult{
		SchemaVersion: 1, Transcripts: 3, Lines: 7, Bytes: 700,
		Resent:  []control.ResentTranscript{{SessionID: "a", Path: "/p/a.jsonl", From: 3, Lines: 7, Generation: 3}},
		Skipped: []control.SkippedFile{{SessionID: "b", Path: "/p/b.jsonl", Why: "forgotten"}},
	}, nil
}

func (actor) Metrics(io.Writer) {}

// fakeServer makes keys and takes all, as a plain server does. With FAKE_SERVER=broken it ends at once.
func fakeServer() {
	if strings.HasPrefix(strings.Join(os.Args[1:], " "), "key create ") {
		store := strings.TrimPrefix(os.Args[len(os.Args)-1], "sqlite:")
		if err := os.WriteFile(store, nil, 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("ccs_fake")
		os.Exit(0)
	}
	if os.Getenv("FAKE_SERVER") == "broken" {
		fmt.Fprintln(os.Stderr, "ccship-server: the database is broken")
		os.Exit(1)
	}
	ctx, stop := show.UntilSignal(context.Background())
	defer stop()
	server := &http.Server{Addr: os.Args[3], Handler: http.HandlerFunc(take), ReadHeaderTimeout: time.Minute}
	ln, err := net.Listen("tcp", server.Addr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() { _ = server.Serve(ln) }()
	<-ctx.Done()
	_ = server.Close()
}

func take(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == protocol.SameHostPath:
		protocol.AnswerSameHost(w, r)
	case r.URL.Path == "/healthz":
		_, _ = fmt.Fprint(w, os.Getpid())
	case r.URL.Path == protocol.KeyProofPath:
		hash, nonce := sha256.Sum256([]byte("ccs_fake")), r.URL.Query().Get("nonce")
		a := protocol.KeyProof{Store: "s", Proof: protocol.ServerProof(hash, nonce, "s")}
		if !protocol.EqualProofs(r.URL.Query().Get("proof"), protocol.ClientProof(hash, nonce)) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"code":"`+protocol.CodeUnknownKey+`"}}`)
			return
		}
		_ = json.NewEncoder(w).Encode(a)
	case r.URL.Path == "/die": // a test ends the server from outside
		os.Exit(7)
	case r.Header.Get("X-API-Key") != "ccs_fake":
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/api/tickets":
		_, _ = fmt.Fprintf(w, `{"url":"http://%s/login?ticket=t1cket","until":"2026-11-20T12:00:00Z"}`, r.Host)
	default:
		var body struct{ Entries []json.RawMessage }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"success":true,"entries_stored":%d}`, len(body.Entries))
	}
}
