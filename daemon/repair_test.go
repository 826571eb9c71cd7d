package daemon

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

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
