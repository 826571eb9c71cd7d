package store_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// daemon is a client that keeps a ledger.
type daemon struct {
	incarnation string
	known       server.Receipt
}

// write puts lines and learns from the answer. It returns the refusal's code, "" for none.
func (d *daemon) write(t *testing.T, st full, b *server.Batch) string {
	t.Helper()
	b.Head.Writer = server.Writer{Incarnation: d.incarnation, Store: d.known.Store, Count: d.known.Count, Token: d.known.Token}
	err := st.Put(t.Context(), b)
	if no, ok := errors.AsType[*server.LedgerError](err); ok {
		return no.Code
	}
	if no, ok := errors.AsType[*server.StreamError](err); ok {
		return no.Code
	}
	kit.Must(t, err)
	d.known = b.Head.Receipt
	return ""
}

func wantCode(t *testing.T, what, got, want string) {
	t.Helper()
	kit.Equal(t, what+": refused with", got, want)
}

// ledger: a daemon's writes are counted, a restart takes over, and a writer that does not know what is stored is refused.
func (s suite) ledger(t *testing.T) {
	st := s.open(t)
	a := &daemon{incarnation: "a"}
	wantCode(t, "the first write", a.write(t, st, batch("s", object(0, "a0"))), "")
	wantCode(t, "the next one", a.write(t, st, batch("t", object(0, "b0"))), "")
	kit.Require(t, a.known.Count == 2 && a.known.Store != "", "receipt %+v", a.known)
	backup := *a
	wantCode(t, "one more", a.write(t, st, batch("s", object(1, "a1"))), "")

	restarted := &daemon{"b", a.known}
	wantCode(t, "after a restart", restarted.write(t, st, batch("s", object(2, "a2"))), "")
	wantCode(t, "the incarnation before", a.write(t, st, batch("s", object(3, "a3"))), protocol.CodeWriterReplaced)

	restored := &daemon{"c", backup.known}
	wantCode(t, "a state that went back", restored.write(t, st, batch("s", object(3, "x"))), protocol.CodeWriterBehind)
	wantCode(t, "a new state", (&daemon{incarnation: "d"}).write(t, st, batch("s", object(0, "a0"))), protocol.CodeWriterBehind)
	ahead := &daemon{"b", restarted.known}
	ahead.known.Count += 5
	wantCode(t, "a store that went back", ahead.write(t, st, batch("s", object(3, "x"))), protocol.CodeStoreBehind)
	for _, known := range []server.Receipt{restarted.known, backup.known} { // the last write, and one before it
		known.Token = "OTHER"
		again := &daemon{"b", known}
		wantCode(t, "a history with as many writes", again.write(t, st, batch("s", object(3, "x"))), protocol.CodeStoreBehind)
	}
	elsewhere := &daemon{"b", server.Receipt{Store: "another", Count: 1}}
	wantCode(t, "another store", elsewhere.write(t, st, batch("s", object(3, "x"))), protocol.CodeOtherStore)

	l := kit.Try(st.Ledger(t.Context(), 0, "m", 2, 10)).Must(t)
	want := []protocol.ChangedStream{{SessionID: "s", Count: 4}}
	kit.Check(t, (server.Receipt{Store: l.Store, Count: l.Count, Token: l.Token}) == restarted.known && l.Writer == "b" &&
		l.Since == backup.known.Token && l.Since != "" && slices.Equal(l.Changed, want), "ledger %+v", l)
	kit.Equal(t, "refused writes left lines", dump(t, openSession(t, st, "s"), 0), []string{"0:object:a0", "1:object:a1", "2:object:a2"})
	l, err := st.Ledger(t.Context(), 0, "other", 0, 10)
	kit.Check(t, err == nil && l.Count == 0 && l.Store == a.known.Store, "a machine that never wrote: %+v, %v", l, err)
}

// ledgerConflicts: what was acknowledged is not replaced, and no epoch hides another one.
func (s suite) ledgerConflicts(t *testing.T) {
	st := s.open(t)
	a := &daemon{incarnation: "a"}
	wantCode(t, "lines", a.write(t, st, batch("s", object(0, "zero"), object(1, "one"))), "")
	wantCode(t, "the same again", a.write(t, st, batch("s", object(1, "one"), object(2, "two"))), "")
	wantCode(t, "other bytes", a.write(t, st, batch("s", object(1, "ONE"), object(3, "three"))), protocol.CodeOtherBytes)
	moved := batch("s", object(3, "three"))
	moved.Head.RewoundTo = 1
	wantCode(t, "another start of the generation", a.write(t, st, moved), protocol.CodeOtherBytes)
	fresh := batch("s", object(0, "zero"))
	fresh.Head.Epoch = "new"
	wantCode(t, "another epoch", a.write(t, st, fresh), protocol.CodeOtherEpoch)
	kit.Equal(t, "lines", dump(t, openSession(t, st, "s"), 0), []string{"0:object:zero", "1:object:one", "2:object:two"})
	next := batch("s", object(1, "ONE"))
	next.Head.Generation, next.Head.RewoundTo = 1, 1
	wantCode(t, "a new generation", a.write(t, st, next), "")
	snap := openSession(t, st, "s")
	x := snap.Session()
	kit.Check(t, x.Epochs == 1 && x.Generation == 1, "session %+v", x)
	// An older client opens an epoch and goes on in it: one with a ledger finds it in front.
	put(t, st, batch("s", object(0, "zero")), func(b *server.Batch) { b.Head.Epoch = "old client" })
	next = batch("s", object(2, "two"))
	next.Head.Generation, next.Head.RewoundTo = 1, 1
	b := &daemon{"b", a.known}
	wantCode(t, "after an older client's write", b.write(t, st, next), protocol.CodeWriterBehind)
	next.Head.Writer = server.Writer{Incarnation: "b", Store: a.known.Store, Count: a.known.Count + 1} // it has compared
	front, ok := errors.AsType[*server.StreamError](st.Put(t.Context(), next))
	kit.Check(t, ok && *front == (server.StreamError{Code: protocol.CodeOtherEpoch, Epoch: "old client", Generation: 0, Line: 1}),
		"the epoch in front: %+v", front)
}

// ledgerArtifacts: checkpoints, documents and files are counted too.
func (s suite) ledgerArtifacts(t *testing.T) {
	st := s.open(t)
	a := &daemon{incarnation: "a"}
	wantCode(t, "lines", a.write(t, st, batch("s", object(0, "zero"))), "")
	b := &server.CheckpointBatch{Head: batch("s").Head, List: []server.Checkpoint{mark("c", 1)}, Received: start}
	b.Head.Writer = server.Writer{Incarnation: "a", Store: a.known.Store, Count: a.known.Count}
	kit.Must(t, st.PutCheckpoints(t.Context(), b))
	kit.Equal(t, "writes counted", b.Head.Receipt.Count, a.known.Count+1)
	b.Head.Writer = server.Writer{Incarnation: "restored", Store: a.known.Store, Count: a.known.Count}
	b.List[0].ID = "d"
	no, ok := errors.AsType[*server.LedgerError](st.PutCheckpoints(t.Context(), b))
	kit.Check(t, ok && no.Code == protocol.CodeWriterBehind, "a state that went back: %v", no)
	list, err := st.Checkpoints(t.Context(), all, server.CheckpointQuery{Limit: 10})
	kit.Check(t, err == nil && len(list.List) == 1, "%d checkpoints, %v", len(list.List), err)
}

// digests: different views never have one digest, whatever is missing where, and the same view has the same one however
// it came about.
func (s suite) digests(t *testing.T) {
	st := s.open(t)
	note := func(i, offset int64, sum byte) server.Line {
		return server.Line{Index: i, Kind: server.Oversize, Raw: transcript.AppendOversize(nil, i, offset, 9, [32]byte{sum})}
	}
	kinds := []func(i int64) server.Line{
		nil, // it is missing
		func(i int64) server.Line { return object(i, "a") },
		func(i int64) server.Line { return object(i, "b") },
		func(i int64) server.Line { return note(i, 5, 1) },
		func(i int64) server.Line { return note(i, 6, 1) },
		func(i int64) server.Line { return note(i, 5, 2) },
	}
	seen := map[string][]int{}
	var try func(view []int)
	try = func(view []int) {
		var list []server.Line
		for i, k := range view {
			if kinds[k] != nil {
				list = append(list, kinds[k](int64(i)))
			}
		}
		if len(list) > 0 {
			name := fmt.Sprint("s", view)
			put(t, st, batch(name, list...), func(b *server.Batch) { b.Head.EndLine = int64(len(view)) })
			v, _ := views(t, st, name)
			other, twice := seen[v[0].SHA256]
			kit.Check(t, !twice, "%v and %v have one digest", other, view)
			seen[v[0].SHA256] = slices.Clone(view)
			if last := view[len(view)-1]; len(view) == 3 && kinds[view[0]] != nil && kinds[last] != nil {
				kit.Equal(t, fmt.Sprintf("%v after a rewind has another digest", view), s.rewoundDigest(t, st, name, list),
					v[0].SHA256)
			}
		}
		for k := range kinds {
			if len(view) < 2 || len(view) == 2 && k%2 == 1 { // each put is durable, so not all of three lines
				try(append(view, k))
			}
		}
	}
	try(nil)
	kit.Equal(t, "digests", len(seen), 6+36+36*3-2)
}

// rewoundDigest is the digest of lines of which all but the first came with a rewind.
func (s suite) rewoundDigest(t *testing.T, st full, name string, list []server.Line) string {
	t.Helper()
	name += "rewound"
	put(t, st, batch(name, list[0], object(1, "x"), object(2, "x"), object(3, "x")))
	put(t, st, generationOf(name, 1, 1, server.Writer{}, list[1:]...))
	v, _ := views(t, st, name)
	return v[1].SHA256
}

// urgency: lines of sessions that were derived come before new sessions, and those before what is derived again. Of
// the first the one that waits longest is in front, of the others the one that was written last.
func (s suite) urgency(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	at := start
	write := func(names ...string) {
		for _, name := range names {
			at = at.Add(time.Second)
			put(t, st, batch(name, object(int64(at.Sub(start)/time.Second), "{}")),
				func(b *server.Batch) { b.Received = at })
		}
	}
	take := func() (order []string, tasks []server.Task) {
		tasks = kit.Try(st.Lagging(ctx, 100)).Must(t)
		order = kit.Each(tasks, func(task server.Task) string { return task.SessionID })
		return order, tasks
	}
	write("again1", "again2")
	_, tasks := take()
	for _, task := range tasks {
		save(t, st, task, server.Derivation{Format: 1})
	}
	kit.Must(t, st.Renew(ctx, 2))
	write("live1", "live2", "live3")
	for name, task := range lease(t, st) {
		switch name {
		case "live1", "live2", "live3":
			continue
		}
		d := server.Derivation{Task: task, Position: place(t, st, task), Released: true}
		d.Position.Line = 0
		kit.Must(t, st.SaveDerived(ctx, &d))
	}
	for _, name := range []string{"live2", "live3", "live1"} {
		ref := kit.Try(st.Resolve(ctx, all, server.Ref{SessionID: name})).Must(t)
		save(t, st, server.Task{Stream: ref.Stream, SessionID: name, Version: 1}, server.Derivation{})
	}
	write("new1", "live1", "live3", "new2", "live2", "again1")
	want := []string{"live2", "live3", "live1", "new2", "new1", "again1", "again2"}
	order, _ := take()
	kit.Check(t, slices.Equal(order, want), "handed out as %v, not %v", order, want)
}

// together: derivations of several streams are stored in one piece, and a stale one among them keeps all out. An answer
// that two of them have counts once, where it has the most output.
func (s suite) together(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	var list []*server.Derivation
	needle := object(0, says("prompt", "needle"))
	for i := range 4 {
		b := batch(fmt.Sprint("s", i), needle)
		b.Owner = int64(7 - i%3) // the first and the last have one owner
		put(t, st, b)
	}
	for name, task := range lease(t, st) {
		output := map[string]int64{"s3": 9}[name]
		list = append(list, &server.Derivation{Task: task, Position: place(t, st, task), Done: true,
			Answers: []server.Answer{answer("k", max(output, 5))}, Summary: server.Summary{Title: name},
			Texts: said(needle, start)})
	}
	for i := range list {
		list[i].Task.Masked++
		err := st.SaveDerived(ctx, list...)
		kit.Require(t, errors.Is(err, server.ErrStale), "with a stale one: %v", err)
		list[i].Task.Masked--
	}
	kit.Equal(t, "lag", lag(t, st), 4)
	kit.Equal(t, "used", outputs(t, st, server.UsageQuery{}), "")
	expectNames(t, "of a refused group", searched(t, st, all, server.SearchQuery{Text: "needle"}))
	kit.Must(t, st.SaveDerived(ctx, list...))
	kit.Equal(t, "lag", lag(t, st), 0)
	kit.Equal(t, "used", outputs(t, st, server.UsageQuery{}), "s1:1×5 s2:1×5 s3:1×9")
	expectNames(t, "of a stored group", searched(t, st, all, server.SearchQuery{Text: "needle"}), "s0", "s1", "s2", "s3")
}

// keptState: a state stays while its stream is derived further, and says up to which line it goes.
func (s suite) keptState(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	folded := func(task server.Task, line int64, state string) {
		t.Helper()
		snap := kit.Try(st.View(ctx, all, server.Ref{Stream: task.Stream})).Must(t)
		defer snap.Close()
		at, got, err := snap.Folded(ctx)
		kit.Check(t, err == nil && at.Line == line && string(got) == state, "%q of line %d, %v; want %q of line %d", got,
			at.Line, err, state, line)
	}
	for i := range int64(4) {
		put(t, st, batch("s", object(i, "{}")))
		task := lease(t, st)["s"]
		kit.Equal(t, fmt.Sprintf("it goes on at %+v", task.Position), task.Position.Line, i)
		d := save(t, st, task, server.Derivation{State: []byte(fmt.Sprint("state", i)), KeepState: i%3 != 0})
		folded(d.Task, i/3*3+1, fmt.Sprint("state", i/3*3))
	}
}

// resting: lines of a stream that rests are not handed out before it has rested.
func (s suite) resting(t *testing.T) {
	st := s.open(t)
	put(t, st, batch("s", object(0, "{}")))
	save(t, st, lease(t, st)["s"], server.Derivation{Rest: time.Hour})
	put(t, st, batch("s", object(1, "{}")))
	tasks := lease(t, st)
	kit.Check(t, len(tasks) == 0 && lag(t, st) == 1, "handed out: %v; %d lag", tasks, lag(t, st))
}
