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
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/protocol"
)

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
