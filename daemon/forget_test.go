package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

func (w *world) forget(session string) (control.ForgetResult, error) {
	w.t.Helper()
	return w.client.Forget(context.Background(), control.ForgetRequest{Session: session})
}

// streams are the names of what the server has.
func (w *world) streams() []string {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	names := []string{}
	for name := range w.server.streams {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// TestForget removes a session and its agents, keeps the files, and never sends what is written to them later: not at
// once, not after a restart, and not after the state was lost.
func TestForget(t *testing.T) {
	w := newWorld(t)
	main := w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	agent := w.write("-p/"+sessionA+"/subagents/agent-a1.jsonl", records("/home/kim/shop", 0, 3))
	w.startWith("-p/"+sessionB+".jsonl", records("/home/kim/shop", 0, 4))
	r, err := w.forget(sessionA)
	kit.Require(t, err == nil && r.Transcripts == 2 && r.Lines == 8 && len(r.Pending)+len(r.Kept) == 0 &&
		(slices.Equal(r.OnDisk, []string{main, agent}) || slices.Equal(r.OnDisk, []string{agent, main})),
		"forget: %+v, %v", r, err)
	for _, when := range []string{"at once", "after a restart", "after the state was lost"} {
		switch when {
		case "after a restart":
			w.restart()
		case "after the state was lost":
			w.stop()
			kit.Must(t, os.Remove(filepath.Join(w.cfg.StateDir, "state.db")))
			w.start()
			w.sync() // learns it from the server
		}
		w.write("-p/"+sessionA+".jsonl", record("/home/kim/shop", 9))
		w.write("-p/"+sessionA+"/subagents/agent-new.jsonl", records("/home/kim/shop", 0, 2))
		w.write("-p/"+sessionB+".jsonl", record("/home/kim/shop", 9))
		s := w.sync()
		kit.Check(t, s.Done, "%s: sync: %+v", when, s)
		w.server.mu.Lock()
		lost := when == "after the state was lost"
		kit.Check(t, w.server.resent > 0 == lost, "%s: %d requests about what was forgotten", when, w.server.resent)
		w.server.mu.Unlock()
		got := w.streams()
		kit.Check(t, slices.Equal(got, []string{sessionB}), "%s the server has %v", when, got)
		w.until("nothing waits", func() bool { return w.status().Outbox.Entries == 0 })
		v := w.verify()
		kit.Check(t, v.Equal, "%s: verify: %+v", when, v.Differences)
	}
	_, err = os.Stat(main)
	kit.Check(t, err == nil, "the file on disk: %v", err)
	excluded := w.status().Files.Excluded
	kit.Check(t, excluded >= 2, "%d transcripts are excluded", excluded)
}

// TestForgetWaiting drops what waits and what was refused, and tells a server that is down as soon as it is back.
func TestForgetWaiting(t *testing.T) {
	w := newWorld(t)
	w.startWith("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	w.server.with(func() { w.server.status = http.StatusServiceUnavailable })
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 5, 9))
	w.until("lines wait", func() bool { return w.status().Outbox.Entries == 4 })
	r, err := w.forget(sessionA)
	kit.Check(t, err == nil && r.Waiting == 4 && len(r.Pending) == 1 && r.Detail != "", "forget: %+v, %v", r, err)
	kit.Equal(t, "entries wait", w.status().Outbox.Entries, 0)
	s, err := w.client.Sync(t.Context(), control.SyncRequest{}) // the server still does not answer
	kit.Check(t, err == nil && s.Lines == 9 && s.Excluded == 9 && s.Acknowledged == 0, "sync: %+v, %v", s, err)
	w.server.with(func() { w.server.status = 0 })
	w.stop()
	w.start() // does not wait out its patience
	w.until("the server is told", func() bool { return len(w.streams()) == 0 })
}

// TestForgetSilent does not wait for a server that never answers: others forget, and that one is told once it answers.
func TestForgetSilent(t *testing.T) {
	w := newWorld(t)
	theirs := newMemServer()
	web := httptest.NewServer(theirs)
	t.Cleanup(web.Close)
	project := t.TempDir()
	kit.WriteFile(t, filepath.Join(project, ".codetracker", "config.json"), fmt.Sprintf(`{"server_url":%q}`, web.URL))
	kit.WriteFile(t, filepath.Join(project, ".codetracker", "credentials.json"), `{"api_key":"theirs","current_project_hash":"h4sh"}`)
	answers := make(chan struct{})
	answer := sync.OnceFunc(func() { close(answers) })
	t.Cleanup(answer)
	w.server.forgetting = func() { <-answers }
	w.cfg.TrustedProjects = []string{project}
	w.write("-p/"+sessionA+".jsonl", records(project, 0, 5))
	w.startWith("-q/"+sessionA+"/subagents/agent-a1.jsonl", records("/home/kim/shop", 0, 3))
	kit.Require(t, len(w.streams()) == 1, "the user's server has %v", w.streams())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := w.client.Forget(ctx, control.ForgetRequest{Session: sessionA})
	kit.Check(t, err == nil && r.Lines == 5 && slices.Equal(r.Pending, []string{w.cfg.ServerURL}) &&
		strings.Contains(r.Detail, "no answer for 10s"), "forget: %+v, %v", r, err)
	answer()
	w.until("the server is told", func() bool { return len(w.streams()) == 0 })
}

// TestForgetNobody leaves no note behind for what never was.
func TestForgetNobody(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.send("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	for _, name := range []string{"never-was", sessionA[:8]} {
		_, err := w.forget(name)
		var e *control.Error
		kit.Check(t, errors.As(err, &e) && e.Code == control.CodeNoSession, "forget %q: %v", name, err)
	}
	w.send("-p/never-was.jsonl", records("/home/kim/shop", 0, 5))
	got := w.streams()
	kit.Check(t, len(got) == 2, "the server has %v", got)
}

// TestForgetHistory keeps the prompts of a forgotten session out of what is sent of the prompt history from then on.
func TestForgetHistory(t *testing.T) {
	w := newWorld(t)
	w.startWith("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	w.must(w.forget(sessionA))
	w.send("../history.jsonl", `{"display":"secret","project":"/home/kim/shop","sessionId":"`+sessionA+"\"}\n"+`{"display":"other","project":"/home/kim/shop","sessionId":"`+sessionB+"\"}\n")
	got := w.server.newest(w.historyStream())
	kit.Check(t, !strings.Contains(got, "secret") && strings.Contains(got, "other"), "the history on the server: %q", got)
	v := w.verify()
	kit.Check(t, v.Equal, "verify: %+v", v)
}

// TestForgottenElsewhere takes in what another machine, or the server's owner, had forgotten: verify does not miss it.
func TestForgottenElsewhere(t *testing.T) {
	w := newWorld(t)
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	w.write("-p/"+sessionA+"/subagents/agent-a1.jsonl", records("/home/kim/shop", 0, 3))
	w.startWith("-p/"+sessionB+".jsonl", records("/home/kim/shop", 0, 4))
	w.server.mu.Lock()
	w.server.forgotten = map[string]bool{sessionA: true}
	delete(w.server.streams, sessionA)
	delete(w.server.streams, sessionA+"/agent-a1")
	w.server.mu.Unlock()
	v := w.verify()
	kit.Check(t, v.Equal && v.ExcludedFiles == 2 && v.Files == 1, "verify: %+v", v)
	w.send("-p/"+sessionA+".jsonl", record("/home/kim/shop", 9))
	kit.Equal(t, "transcripts are excluded", w.status().Files.Excluded, 2)
	w.restart()
	w.until("it is known after a restart", func() bool { return w.status().Files.Excluded == 2 })
}

// TestForgetRefused says that a server keeps what it has, and does not ask it again.
func TestForgetRefused(t *testing.T) {
	w := newWorld(t)
	w.server.keeps = true
	w.startWith("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	r, err := w.forget(sessionA)
	kit.Check(t, err == nil && len(r.Kept) == 1 && len(r.Pending) == 0 && strings.Contains(r.Detail, "not yours"),
		"forget: %+v, %v", r, err)
}

// TestForgetProxy asks again: while the server is away, what a proxy answers in its place removes nothing.
func TestForgetProxy(t *testing.T) {
	for how, proxy := range map[string]struct {
		status int
		says   string
	}{
		"a proxy without a server":  {http.StatusNotFound, "404 page not found"},
		"a page that says that":     {http.StatusOK, "<html>Sorry, we are down</html>"},
		"another program's success": {http.StatusOK, `{"ok":true}`},
		"nothing":                   {http.StatusOK, "null"},
	} {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t)
			w.startWith("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
			w.server.with(func() { w.server.status, w.server.says, w.server.announces = proxy.status, proxy.says, false })
			r, err := w.forget(sessionA)
			kit.Check(t, err == nil && len(r.Pending) == 1 && len(r.Kept) == 0 && r.Detail != "", "forget: %+v, %v", r, err)
			w.server.with(func() { w.server.status, w.server.announces = 0, true })
			w.stop()
			w.start() // does not wait out its patience
			w.until("the server is told", func() bool { return len(w.streams()) == 0 })
		})
	}
}

// picky is a server that refuses requests with a word in them.
func (w *world) picky(t *testing.T, word string) (refuses *atomic.Bool) {
	refuses = &atomic.Bool{}
	refuses.Store(true)
	w.server.announces = false // so that bodies are not compressed
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && refuses.Load() && bytes.Contains(body, []byte(word)) {
			rw.WriteHeader(http.StatusBadRequest)
			_, _ = rw.Write([]byte(`{"error":"no such word"}`))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.server.ServeHTTP(rw, r)
	}))
	t.Cleanup(web.Close)
	w.cfg.ServerURL = web.URL
	return refuses
}

func (w *world) letters() []control.DeadLetter {
	w.t.Helper()
	d := kit.Try(w.client.DeadLetters(w.t.Context())).Must(w.t)
	return d.Letters
}

// TestDeadLetters lists what the server refuses, sends it again when asked to, and drops it.
func TestDeadLetters(t *testing.T) {
	w := newWorld(t)
	refuses := w.picky(t, "poison")
	text := record("/home/kim/shop", 0)
	for _, word := range []string{"poison", "fine", "poison", "poison"} {
		text += `{"type":"user","text":"` + word + `"}` + "\n"
	}
	w.write("-q/"+sessionB+".jsonl", record("/home/kim/shop", 0)) // a server that took nothing may refuse everything
	w.deliver()
	w.send("-p/"+sessionA+".jsonl", text)
	letters := w.letters()
	kit.Require(t, len(letters) == 3, "%d dead letters: %+v", len(letters), letters)
	l := letters[0]
	kit.Check(t, l.Line == 1 && l.Session == sessionA && l.Status == 400 && l.Reason == "rejected" &&
		strings.Contains(l.Answer, "no such word") && l.Server == w.cfg.ServerURL && l.Entries == 1 && l.Bytes != 0 &&
		!l.At.IsZero(),
		"letter %+v", l)
	var known *control.Error
	for _, req := range []control.DeadRequest{{}, {IDs: []string{l.ID}, All: true}} {
		_, err := w.client.RetryDead(t.Context(), req)
		kit.Check(t, asControlError(err, &known) && known.Code == control.CodeUsage, "%+v: %v", req, err)
	}
	for _, id := range []string{"9999-1", "x", "1", l.ID + "0", ""} {
		_, err := w.client.DropDead(t.Context(), control.DeadRequest{IDs: []string{l.ID, id}})
		if !asControlError(err, &known) || known.Code != control.CodeNoDeadLetter || len(w.letters()) != 3 {
			t.Errorf("drop of %q: %v, %d letters left", id, err, len(w.letters()))
		}
	}
	r, err := w.client.RetryDead(t.Context(), control.DeadRequest{All: true})
	kit.Check(t, err == nil && r.Letters == 3, "retry: %+v %v", r, err)
	w.sync()
	again := w.letters()
	kit.Check(t, len(again) == 3 && !slices.ContainsFunc(again, func(x control.DeadLetter) bool { return x.ID == l.ID }),
		"refused again: %+v", again)
	r, err = w.client.DropDead(t.Context(), control.DeadRequest{IDs: []string{again[0].ID}})
	kit.Check(t, err == nil && r.Letters == 1, "drop: %+v %v", r, err)
	refuses.Store(false)
	r, err = w.client.RetryDead(t.Context(), control.DeadRequest{IDs: []string{again[1].ID, again[2].ID}})
	kit.Check(t, err == nil && r.Letters == 2, "retry: %+v %v", r, err)
	synced := w.sync()
	kit.Check(t, synced.Done && synced.Dead == 0 && len(w.letters()) == 0, "sync: %+v", synced)
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	lines := w.server.streams[sessionA][0].lines
	kit.Check(t, len(lines) == 4 && lines[again[0].Line] == nil, "the server has %d lines, want all but the dropped one", len(lines))
}

// TestOutbox lists what waits, the oldest first, by pages.
func TestOutbox(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pause("")
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	w.until("the first waits", func() bool { return w.status().Outbox.Entries == 5 })
	w.write("-q/"+sessionB+".jsonl", records("/home/kim/other", 0, 3))
	w.until("the second waits", func() bool { return w.status().Outbox.Entries == 8 })
	list, err := w.client.Outbox(t.Context(), control.Page{Limit: 1})
	kit.Require(t, err == nil && len(list.Rows) == 1 && list.Next == 1 && list.Outbox.Entries == 8 && list.Pause != nil && len(list.Servers) == 1,
		"outbox: %+v %v", list, err)
	if r := list.Rows[0]; r.Session != sessionA || r.Entries != 5 || r.Server != w.cfg.ServerURL || r.Path != "-p/"+sessionA+".jsonl" || r.Bytes == 0 || r.Stored == 0 || r.OldestAt.IsZero() {
		t.Errorf("row %+v", r)
	}
	list, err = w.client.Outbox(t.Context(), control.Page{Offset: 1})
	kit.Check(t, err == nil && len(list.Rows) == 1 && list.Next == 0 && list.Rows[0].Session == sessionB,
		"second page: %+v %v", list, err)
	s := w.sessions(control.SessionsQuery{Project: "shop"}).Sessions[0]
	kit.Check(t, s.Waiting == 5 && s.Acknowledged == 0, "session %+v", s)
}

// A sync says "delivered" only when the dead letters that a new server version has queued again have arrived.
func TestSyncWaitsForDeadLettersOfANewVersion(t *testing.T) {
	w := newWorld(t)
	var newer atomic.Bool
	var count atomic.Int64
	w.server.announces = false // so that bodies are not compressed
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		poison := err == nil && bytes.Contains(body, []byte("poison"))
		rw.Header().Set("Ccship-Protocol", "1")
		rw.Header().Set(protocol.HeaderLedger, fmt.Sprint("s ", count.Add(1)))
		rw.Header().Set(protocol.HeaderServer, map[bool]string{false: "1.0.0", true: "1.0.1"}[newer.Load()])
		if poison && !newer.Load() {
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		if newer.Load() && r.Method == http.MethodPost {
			<-time.After(300 * time.Millisecond) // the sync waits for the new line already, then for the dead letter
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.server.ServeHTTP(rw, r)
	}))
	t.Cleanup(web.Close)
	w.cfg.ServerURL = web.URL
	const fine, poison = `{"type":"user","text":"fine"}` + "\n", `{"type":"user","text":"poison"}` + "\n"
	w.startWith("-p/"+sessionA+".jsonl", record("/home/kim/shop", 0))
	w.send("-p/"+sessionA+".jsonl", fine+poison+fine)
	n := len(w.letters())
	kit.Require(t, n == 1, "%d dead letters, want 1", n)
	newer.Store(true)
	w.write("-p/"+sessionA+".jsonl", fine)
	r := w.sync()
	kit.Check(t, r.Done && r.Dead == 0 && r.Waiting == 0, "sync: %+v", r)
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	line := w.server.streams[sessionA][0].lines[2]
	kit.Check(t, bytes.Contains(line, []byte("poison")), "line 2 is %q when the sync is done", line)
}
