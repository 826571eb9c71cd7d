package daemon

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// A file that was rewritten as one line without an end is not believed either.
func TestRewrittenAsOneLine(t *testing.T) {
	w := newWorld(t)
	c := chat{session: sessionA}
	text := c.prompt("one") + c.answer("two")
	w.write(transcriptOf(sessionA), text)
	w.start()
	w.sync()
	w.stop()
	db := openTestState(t, w)
	v := newDeriver(db, w.cfg.Log)
	v.where, v.lineCap = whereNothing, w.cfg.LineCap
	w.rewrite(transcriptOf(sessionA), strings.Repeat("x", 2*len(text)))
	for id := range loadFacts(t, db) {
		if _, _, err := v.advance(t.Context(), id); !errors.Is(err, errRewritten) {
			t.Errorf("rewritten: %v", err)
		}
	}
}

// What no row of the state can hold, and no server takes, keeps nothing else from being stored.
func TestUnstorable(t *testing.T) {
	late := chat{session: sessionA}
	for name, lines := range map[string]string{
		"a tool id as long as a file": late.assistant(map[string]any{"type": "tool_use", "id": strings.Repeat("t", 40_000), "name": "mcp__ccship__link_document", "input": map[string]any{"path": "a"}}) +
			late.result(strings.Repeat("t", 40_000), `{"action":"link","path":"a"}`),
		"a compaction in another age": late.record(map[string]any{"type": "system", "subtype": "compact_boundary", "timestamp": 9e15,
			"compactMetadata": map[string]any{"trigger": "auto", "preTokens": 160000}}),
		"a compaction in the year 10000": late.record(map[string]any{"type": "system", "subtype": "compact_boundary", "timestamp": "9999-12-31T23:59:59-05:00",
			"compactMetadata": map[string]any{"trigger": "auto", "preTokens": 160000}}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start()
			w.sync()
			other := chat{session: sessionB}
			w.write(transcriptOf(sessionA), lines)
			w.write(transcriptOf(sessionB), other.prompt("one")+other.compaction())
			if r := w.sync(); !r.Done {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A fold that is made anew and interrupted on the way is no reason to act twice on what was acted on.
func TestRefoldInterrupted(t *testing.T) {
	w, o := newWorld(t), &onlooker{}
	a := chat{session: sessionA}
	w.startSeen(o)
	w.sync()
	w.write(transcriptOf(sessionA), a.prompt("one")+a.result("none", strings.Repeat("o", sliceBytes))+a.prompt("two"))
	w.sync()
	w.stop()
	w.expect(o, "as written", "one!", "two!")
	db := openTestState(t, w)
	for id := range loadFacts(t, db) {
		u, _, err := db.Understood(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		u.Fold[0]++ // as another version left it
		keepUnderstood(t, db, id, u.Place, &u)
		before := u.Place
		v := newDeriver(db, w.cfg.Log)
		v.where, v.lineCap = whereNothing, w.cfg.LineCap
		f, more, err := v.advance(t.Context(), id)
		if err != nil || !more {
			t.Fatal(more, err)
		}
		d := f.take()
		if d.Understood.Place.Line != 1 || d.Prev != before {
			t.Fatalf("%+v", d.Understood.Place)
		}
		keepUnderstood(t, db, id, d.Prev, d.Understood) // and is killed
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	w.startSeen(o)
	w.sync()
	w.expect(o, "the rest", "two")
	w.write(transcriptOf(sessionA), a.prompt("three"))
	w.sync()
	w.expect(o, "what is new", "three!")
}

func keepUnderstood(t *testing.T, db *state.DB, id tail.FileID, prev state.Place, u *state.Understood) {
	t.Helper()
	if errs, err := db.Derive(t.Context(), []state.Derivation{{File: id, Prev: prev, Understood: u}}); err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
}

// One that cannot be stored does not keep the others from it.
func TestStoredApart(t *testing.T) {
	w := newWorld(t)
	a, b := chat{session: sessionA}, chat{session: sessionB}
	w.write(transcriptOf(sessionA), a.prompt("one"))
	w.write(transcriptOf(sessionB), b.prompt("one"))
	w.start()
	w.sync()
	w.stop()
	db := openTestState(t, w)
	var all []state.Derivation
	for id := range loadFacts(t, db) {
		all = append(all, state.Derivation{File: id, Understood: &state.Understood{Place: state.Place{Line: 1}}})
	}
	all[0].Asks = []state.DocumentAsk{{Session: sessionA, Tool: strings.Repeat("t", 40_000)}} // no key is so long
	v := newDeriver(db, w.cfg.Log)
	errs, err := db.Derive(t.Context(), all)
	if err == nil {
		t.Fatal("there are keys that long: ", errs)
	}
	if errs := v.apart(all, err); errs[0] == nil || errs[1] != nil {
		t.Error(errs)
	}
	if _, stored, err := db.Understood(t.Context(), all[1].File); err != nil || !stored {
		t.Error("the other is not stored: ", err)
	}
}

// Whoever does not wait for an answer any more has what it is to be written to for itself.
func TestVisitIsLeft(t *testing.T) {
	w := newWorld(t)
	a := chat{session: sessionA}
	w.write(transcriptOf(sessionA), a.prompt("one"))
	d := w.startSeen(&onlooker{})
	w.sync()
	s, err := d.sessionNamed(t.Context(), sessionA)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	answer := 0
	err = d.derive.visit(ctx, s.id, func(*pass) error {
		cancel()
		for range 1000 {
			answer++
		}
		return nil
	})
	if answer != 1000 {
		t.Errorf("%d written when visit returned %v", answer, err)
	}
	if err := d.derive.visit(ctx, s.id, func(*pass) error { answer = 0; return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := d.derive.visit(t.Context(), s.id, func(*pass) error { return nil }); err != nil || answer != 1000 {
		t.Error("called for nobody: ", answer, err)
	}
}

// A disk that takes nothing is tried again after a while, also when more is in memory than is to be there; and what is
// in memory does not grow meanwhile.
func TestFullDiskIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	v := newDeriver(nil, w.cfg.Log)
	for id := range tail.FileID(mostBurst) {
		f := &following{id: id + 1}
		v.hot[f.id] = f
		v.changed(f)
	}
	v.wanted[mostBurst+1] = struct{}{}
	v.save(true)
	for _, s := range <-v.saves {
		v.saved = append(v.saved, outcome{save: s, err: errors.New("the disk is full")})
	}
	if v.turn(t.Context()) || v.flight {
		t.Errorf("at once again, or with one more: %d in memory, stored %v", len(v.hot), v.flight)
	}
	if next := v.rest(); next <= 0 || next > retrySave {
		t.Errorf("looks again in %v", next)
	}
}

// What was forgotten is not understood again: not when the daemon starts, and not when it is asked for or written.
func TestForgottenIsNotUnderstood(t *testing.T) {
	w := newWorld(t)
	a := chat{session: sessionA}
	w.start()
	w.sync()
	w.write(transcriptOf(sessionA), a.prompt("one")+a.compaction())
	w.sync()
	if _, err := w.client.Forget(t.Context(), control.ForgetRequest{Session: sessionA}); err != nil {
		t.Fatal(err)
	}
	nothing := func(when string) {
		t.Helper()
		w.sync()
		if list, err := w.client.Checkpoints(t.Context(), control.CheckpointsQuery{}); err != nil || len(list.Checkpoints) > 0 {
			t.Errorf("%s: %+v %v", when, list, err)
		}
		if m, err := w.client.Messages(t.Context(), control.MessagesQuery{Session: sessionA}); err == nil {
			t.Errorf("%s: messages %q", when, said(m))
		}
		w.stop()
		db := openTestState(t, w)
		for id := range loadFacts(t, db) {
			if u, found, err := db.Understood(t.Context(), id); err != nil || found {
				t.Errorf("%s: understood up to %v, %v", when, u.Place, err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	nothing("forgotten")
	w.start()
	nothing("after a restart")
	w.start()
	w.write(transcriptOf(sessionA), a.prompt("two")+a.compaction())
	nothing("written again")
}

// What is given up while it is on its way to the disk owes nothing any more: a sync would wait for it for ever.
func TestGivenUpWhileStored(t *testing.T) {
	w := newWorld(t)
	for name, stored := range map[string]error{"stored": nil, "not stored": errors.New("the disk is full"), "stale": tail.ErrStale} {
		v := newDeriver(nil, w.cfg.Log)
		f := &following{id: 1}
		v.hot[1] = f
		effect := func() {
			f.step.Pending = append(f.step.Pending, state.Pending{Session: sessionA})
			v.changed(f)
		}
		effect()
		v.save(true)
		list := <-v.saves
		effect()
		v.forsake(f, errRewritten)
		v.saved = append(v.saved, outcome{save: list[0], err: stored})
		v.outcomes()
		if !v.settled() || len(v.hot) > 0 {
			t.Errorf("%s: %d owe something, %d in memory", name, v.owed, len(v.hot))
		}
	}
}
