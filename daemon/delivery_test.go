package daemon

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

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
