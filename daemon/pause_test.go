package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/proof"
	"github.com/ccship/ccship/e2e/kit"
)

func (w *world) pause(length string) control.PauseState {
	w.t.Helper()
	return kit.Try(w.client.Pause(w.t.Context(), control.PauseRequest{For: length})).Must(w.t)
}

// TestPause reads on and sends nothing, over a restart, until it is ended.
func TestPause(t *testing.T) {
	w := newWorld(t)
	path := "-p/" + sessionA + ".jsonl"
	w.startWith(path, records("/home/kim/shop", 0, 5))
	s := w.pause("")
	kit.Check(t, s.Paused && !s.Was && s.Pause != nil && s.Pause.Until == nil, "pause: %+v", s)
	w.write(path, records("/home/kim/shop", 5, 9))
	w.until("the lines are in the outbox", func() bool { return w.status().Outbox.Entries == 4 })
	w.restart()
	w.write(path, records("/home/kim/shop", 9, 10))
	w.until("reading goes on after a restart", func() bool { return w.status().Outbox.Entries == 5 })
	f, err := w.client.Flush(t.Context())
	kit.Check(t, err == nil && f.Paused && f.Waiting == 5, "flush: %+v %v", f, err)
	paused := w.status()
	kit.Check(t, paused.State == "paused" && paused.Pause != nil && paused.Sent.Entries == 0, "status %s %+v, %d sent", paused.State, paused.Pause, paused.Sent.Entries)
	kit.Equal(t, "what the server got meanwhile", w.server.newest(sessionA), records("/home/kim/shop", 0, 5))
	s, err = w.client.Resume(t.Context())
	kit.Check(t, err == nil && !s.Paused && s.Was, "resume: %+v %v", s, err)
	w.until("the lines arrive", func() bool { return w.server.newest(sessionA) == records("/home/kim/shop", 0, 10) })
	s, err = w.client.Resume(t.Context())
	kit.Check(t, err == nil && !s.Was, "a second resume: %+v %v", s, err)
	w.restart()
	paused = w.status()
	kit.Check(t, paused.Pause == nil, "the pause is back after a restart: %+v", paused.Pause)
}

// TestPauseEnds by itself when its time is up, also while the daemon was not running.
func TestPauseEnds(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pause("1h")
	s := w.pause("1ms")
	kit.Check(t, s.Was && s.Pause.Until != nil && s.Pause.Until.Sub(s.Pause.Since) == time.Millisecond, "a second pause: %+v", s)
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	w.until("the pause is over", func() bool { return w.status().Pause == nil })
	w.until("the lines arrive", func() bool { return w.server.newest(sessionA) == records("/home/kim/shop", 0, 5) })
	w.pause("1ms")
	w.restart()
	w.until("the pause is over", func() bool { return w.status().Pause == nil })
}

// TestSyncEndsPause ends the user's own pause too and says so; one that begins while it waits ends the waiting.
func TestSyncEndsPause(t *testing.T) {
	w := newWorld(t)
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	w.start()
	w.pause("1h")
	r := w.sync()
	kit.Check(t, r.Done && r.Resumed && r.Acknowledged == 5, "sync: %+v", r)
	w.pause("1h")
	v := w.verify()
	kit.Check(t, v.Equal && v.Resumed, "verify: %+v", v)
	w.server.with(func() { w.server.busy = true })
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 5, 6))
	answer := make(chan control.SyncResult, 1)
	go func() {
		r, err := w.client.Sync(context.Background(), control.SyncRequest{Wait: true, Timeout: "1m"})
		kit.Check(t, err == nil, "%v", err)
		answer <- r
	}()
	w.until("the sync waits for the server", func() bool { return w.status().Outbox.Entries == 1 })
	for { // until it is the waiting that the pause meets, not the beginning of the sync, which ends it
		w.pause("1h")
		select {
		case r := <-answer:
			kit.Check(t, !r.Done && r.Reason == proof.ReasonPaused && (!r.Resumed || r.Waiting == 1), "sync: %+v", r)
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func TestPauseRefuses(t *testing.T) {
	w := newWorld(t)
	w.start()
	for _, length := range []string{"soon", "-1h", "0s", "1000000h"} {
		_, err := w.client.Pause(t.Context(), control.PauseRequest{For: length})
		var known *control.Error
		kit.Check(t, asControlError(err, &known) && known.Code == control.CodeUsage && known.Hint != "",
			"pause for %s: %v", length, err)
	}
	s := w.status()
	kit.Check(t, s.Pause == nil, "paused: %+v", s.Pause)
}

// A rewind to before a link was shown has Claude shown again what is linked, once; a later rewind does not.
func TestLinkIsToldAgainAfterRewind(t *testing.T) {
	w, _, cwd := newDocumentWorld(t)
	saveFile(t, cwd, "spec.md", "# Spec\n")
	c := &talk{session: sessionA, cwd: cwd}
	shown := func(text string) string {
		line := c.line("attachment", `""`)
		return strings.Replace(line, `"uuid":`, fmt.Sprintf(`"attachment":{"type":"hook_additional_context","content":[%q]},"uuid":`, text), 1)
	}
	turn := func(text string) string {
		return c.prompt(text) + c.line("assistant", `[{"type":"text","text":"done"}]`)
	}
	back := func(to int, text string) string {
		line := turn(text)
		uuid := func(n int) string { return fmt.Sprintf(`{"parentUuid":"%08d-`, n) }
		return strings.Replace(line, uuid(c.n-2), uuid(to), 1)
	}
	write := func(lines string) { w.send("-p/"+sessionA+".jsonl", lines) }
	w.startWith("-p/"+sessionA+".jsonl", turn("hello"))
	write(shown(w.init(sessionA, cwd)) + turn("one"))
	before := c.n
	w.link(sessionA, "spec.md")
	w.noticed(sessionA, "[Document linked]\n- spec.md")
	write(shown("[Document linked]\n- spec.md") + turn("two"))
	behind := c.n
	write(turn("three"))
	write(back(behind, "four"))
	kit.Equal(t, "after a rewind behind the link Claude is told", w.hook(sessionA, true).Text, "")
	write(back(before, "five"))
	var got string
	w.until("Claude is told again", func() bool { got = w.hook(sessionA, true).Text; return got != "" })
	kit.Check(t, strings.HasPrefix(got, "[Session started]\n") && strings.HasSuffix(got, "\n  - spec.md"),
		"after a rewind before the link Claude is told %q", got)
	kit.Equal(t, "Claude is told once more", w.hook(sessionA, true).Text, "")
}

// TestSyncBesideWriter: sync and verify end while a session is written to without a pause.
func TestSyncBesideWriter(t *testing.T) {
	w := newWorld(t)
	path := w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 3))
	w.deliver()
	over, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		const most = 50_000 // lines, for a slow machine
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		for n := 0; err == nil && n < most; n++ {
			select {
			case <-over:
				ended <- f.Close()
				return
			default:
				_, err = f.WriteString(record("/home/kim/shop", 3))
			}
		}
		ended <- errors.Join(err, f.Close())
	}()
	for range 3 {
		r := w.sync()
		kit.Check(t, r.Done, "sync: %+v", r)
	}
	r := w.verify()
	kit.Check(t, r.Equal, "verify: %+v", r.Differences)
	close(over)
	kit.Must(t, <-ended)
}

// found reports whether a report has a finding of a kind, so often, with a command in what fixes it.
func found(r control.VerifyReport, kind string, count int64, fix string) bool {
	return slices.ContainsFunc(r.Findings, func(f control.VerifyFinding) bool {
		return f.Kind == kind && f.Count == count && strings.Contains(f.Fix, fix)
	})
}

func (w *world) repair() control.VerifyReport {
	w.t.Helper()
	return kit.Try(w.client.Verify(w.t.Context(), control.VerifyRequest{Timeout: "60s", Repair: true}, nil)).Must(w.t)
}

// TestRepair sends what the server lost or holds differently, from the first difference on, and nothing else.
func TestRepair(t *testing.T) {
	text := records("/home/kim/shop", 0, 40)
	for name, c := range map[string]struct {
		damage func(g *memGeneration)
		lines  int64 // sent again
	}{
		"one byte": {
			func(g *memGeneration) { g.lines[7] = bytes.Replace(g.lines[7], []byte("user"), []byte("uses"), 1) }, 33,
		},
		"lines lost":       {func(g *memGeneration) { delete(g.lines, 30); delete(g.lines, 39) }, 10},
		"lines too many":   {func(g *memGeneration) { g.lines[40], g.end = []byte(`{"x":1}`), 41 }, 0},
		"the last newline": {func(g *memGeneration) { g.newline = false }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("-p/"+sessionA+".jsonl", text)
			w.startWith("-p/"+sessionB+".jsonl", text)
			w.server.with(func() { c.damage(w.server.streams[sessionA][0]) })
			if r := w.verify(); r.Equal || !found(r, "differences", 1, "`ccship verify --repair`") {
				t.Fatalf("before: %+v", r)
			}
			before := int64(2 * 40)
			w.until("they are counted", func() bool { return w.status().Sent.Entries == before })
			r := w.repair()
			kit.Check(t, r.Equal && r.Repaired != nil && r.Repaired.Lines == c.lines && len(r.Repaired.Resent) == 1 &&
				r.Repaired.Resent[0].SessionID == sessionA,
				"repair: equal %v, %+v, differences %+v", r.Equal, r.Repaired, r.Differences)
			w.until("they are counted", func() bool { return w.status().Sent.Entries >= before+c.lines })
			kit.Equal(t, "what the server shows", w.server.newest(sessionA), text)
			r = w.repair()
			kit.Check(t, r.Equal && r.Repaired == nil, "a second repair: %+v", r.Repaired)
			kit.Equal(t, "lines were sent", w.status().Sent.Entries-before, c.lines)
		})
	}
}

// TestResend sends a session again from the first line that the server lacks, or all of it, in a new generation.
func TestResend(t *testing.T) {
	text := records("/home/kim/shop", 0, 20)
	w := newWorld(t)
	w.write("-p/"+sessionA+".jsonl", text)
	w.write("-p/"+sessionB+".jsonl", text)
	w.startWith("-p/"+sessionA+"/subagents/agent-x.jsonl", text)
	w.server.mu.Lock()
	delete(w.server.streams, sessionA)
	delete(w.server.streams[sessionB][0].lines, 19)
	w.server.mu.Unlock()
	ctx := t.Context()
	r, err := w.client.Resend(ctx, control.ResendRequest{Session: sessionA[:9]})
	kit.Check(t, err == nil && r.Transcripts == 2 && len(r.Resent) == 1 && r.Lines == 20,
		"resend of a session: %+v, %v", r, err)
	w.sync()
	kit.Equal(t, "what the server shows", w.server.newest(sessionA), text)
	r, err = w.client.Resend(ctx, control.ResendRequest{All: true})
	kit.Check(t, err == nil && r.Transcripts == 3 && len(r.Resent) == 1 && r.Lines == 1 && r.Resent[0].From == 19,
		"resend of all: %+v, %v", r, err)
	r, err = w.client.Resend(ctx, control.ResendRequest{Session: sessionB, FromStart: true})
	kit.Check(t, err == nil && len(r.Resent) == 1 && r.Resent[0].From == 0 && r.Resent[0].Generation != 0,
		"resend from the start: %+v, %v", r, err)
	v := w.verify()
	kit.Check(t, v.Equal, "verify: %+v", v.Differences)
}

// TestResendOfNothing: a session that cannot be sent again is a mistake of the request.
func TestResendOfNothing(t *testing.T) {
	w := newWorld(t)
	w.startWith("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 2))
	w.must(w.client.Forget(t.Context(), control.ForgetRequest{Session: sessionA}))
	for name, req := range map[string]control.ResendRequest{
		"unknown":   {Session: "nosuch"},
		"forgotten": {Session: sessionA},
		"nothing":   {},
		"both":      {Session: sessionA, All: true},
	} {
		_, err := w.client.Resend(t.Context(), req)
		known, ok := errors.AsType[*control.Error](err)
		kit.Check(t, ok && known.Code == control.CodeUsage && known.Hint != "", "%s: %v", name, err)
	}
	if r := w.repair(); !r.Equal || r.ExcludedFiles != 1 || len(r.ExcludedWhy) != 1 ||
		r.ExcludedWhy[0].Why != "forgotten" {
		t.Errorf("a forgotten session: %+v", r)
	}
}

// TestDeadLettersAreNotEqual counts them, and names the command that sends them again.
func TestDeadLettersAreNotEqual(t *testing.T) {
	w := newWorld(t)
	refuses := true
	w.server.refuses = func(line []byte) bool { return refuses && bytes.Contains(line, []byte("POISON")) }
	w.startWith("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5))
	w.send("-p/"+sessionA+".jsonl", `{"type":"user","text":"POISON"}`+"\n"+records("/home/kim/shop", 5, 9))
	r := w.verify()
	kit.Require(t, !r.Equal && len(r.Differences) == 0 && r.Dead == 1 && found(r, "dead_letters", 1, "`ccship outbox retry --all`"),
		"verify: %+v", r)
	w.server.with(func() { refuses = false })
	w.must(w.client.RetryDead(t.Context(), control.DeadRequest{All: true}))
	w.sync()
	r = w.verify()
	kit.Check(t, r.Equal && r.Dead == 0 && w.status().Outbox.Dead == 0, "after the retry: %+v", r)
}

// refuse answers a request with a line that is refused for its content.
func (s *memServer) refuse(w http.ResponseWriter, line []byte) bool {
	if s.refuses == nil || !s.refuses(line) {
		return false
	}
	w.WriteHeader(http.StatusUnprocessableEntity)
	_, _ = io.WriteString(w, `{"error":{"code":"poison","message":"no"}}`)
	return true
}
