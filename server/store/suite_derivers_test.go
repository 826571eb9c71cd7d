package store_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

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
