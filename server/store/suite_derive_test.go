package store_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// lease takes everything that is to derive, by session.
func lease(t *testing.T, st full) map[string]server.Task {
	t.Helper()
	out := map[string]server.Task{}
	tasks := kit.Try(st.Lagging(t.Context(), 1000)).Must(t)
	for _, task := range tasks {
		out[task.SessionID] = task
	}
	return out
}

// place is where a stream's newest view ends.
func place(t *testing.T, st full, task server.Task) server.Position {
	t.Helper()
	snap, err := st.View(t.Context(), all, server.Ref{Stream: task.Stream})
	if err != nil {
		t.Error(err)
		return server.Position{}
	}
	defer snap.Close()
	view, err := server.NewestView(snap)
	kit.Should(t, err)
	return server.Position{Epoch: snap.Epochs()[0].ID, Generation: view.Generation.Number, Line: view.Total}
}

// stateOf is the stored state of a task's fold, in whichever epoch.
func stateOf(t *testing.T, st full, task server.Task) string {
	t.Helper()
	snap := kit.Try(st.View(t.Context(), all, server.Ref{Stream: task.Stream})).Must(t)
	defer snap.Close()
	_, state, err := snap.Folded(t.Context())
	kit.Should(t, err)
	return string(state)
}

// save stores a derivation of everything there is of a task's stream.
func save(t *testing.T, st full, task server.Task, d server.Derivation) server.Derivation {
	t.Helper()
	d.Task, d.Position, d.Done = task, place(t, st, task), true
	for i := range d.Texts {
		d.Texts[i].Generation = d.Position.Generation
	}
	for i := range d.Drops {
		d.Drops[i].Epoch, d.Drops[i].Generation = d.Position.Epoch, d.Position.Generation
	}
	err := st.SaveDerived(t.Context(), &d)
	kit.Require(t, err == nil, "save what is derived of %s: %v", task.SessionID, err)
	return d
}

// deriveAll derives a text, an answer and a rewrite of each main session.
func deriveAll(t *testing.T, st full) {
	t.Helper()
	for name, task := range lease(t, st) {
		var d server.Derivation
		if !strings.Contains(name, "/") {
			d.Texts = said(object(0, says("prompt", "the needle of "+name)), start)
			d.Answers = []server.Answer{{Key: "k", Model: "m", Time: start, Tokens: server.Tokens{Answers: 1, Output: 5}}}
			d.Drops = []server.Rewrite{{First: 0, Last: 1, Lines: 1}}
		}
		save(t, st, task, d)
	}
}

func lag(t *testing.T, st full) int64 {
	t.Helper()
	n, err := st.Lag(t.Context())
	kit.Should(t, err)
	return n
}

// leases: a stream is handed out once, comes again when more was stored, and from where it was left.
func (s suite) leases(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	for i := range 3 {
		put(t, st, batch(fmt.Sprint("s", i), object(0, "{}")),
			func(b *server.Batch) { b.Owner, b.Received = 5, start.Add(time.Duration(i)*time.Second) })
	}
	first, err := st.Lagging(ctx, 2)
	kit.Require(t, err == nil && len(first) == 2 && first[0].SessionID == "s2" && first[1].SessionID == "s1", "%+v, %v", first, err)
	if x := first[0]; x.Owner != 5 || x.Machine != "m" || x.Position != (server.Position{}) || stateOf(t, st, x) != "" || x.Version < 1 {
		t.Errorf("%+v", x)
	}
	rest := lease(t, st)
	kit.Require(t, len(rest) == 1 && rest["s0"].Stream != 0, "another caller gets %+v", rest)
	kit.Equal(t, "lag", lag(t, st), 3)
	d := save(t, st, rest["s0"], server.Derivation{State: []byte("\x00state"), Summary: server.Summary{Title: "t", Started: start}})
	n := lag(t, st)
	kit.Check(t, n == 2 && len(lease(t, st)) == 0, "%d lag", n)
	f, err := st.SummaryOf(ctx, rest["s0"].Stream)
	kit.Check(t, err == nil && f.Title == "t" && f.Started.Equal(start), "%+v, %v", f, err)
	f, err = st.SummaryOf(ctx, first[0].Stream)
	kit.Check(t, err == nil && f.Title == "", "%+v, %v", f, err)
	for _, x := range []server.Task{rest["s0"], first[0]} {
		snap := kit.Try(st.View(ctx, server.Scope{All: true}, server.Ref{Stream: x.Stream})).Must(t)
		at, state, err := snap.Folded(ctx)
		derived := x.Stream == d.Task.Stream
		kit.Check(t, err == nil && (!derived || at == d.Position && string(state) == "\x00state") && (derived ||
			at == server.Position{} && state == nil), "folded: %+v, %q, %v", at, state, err)
		kit.Should(t, snap.Close())
	}
	put(t, st, batch("s0", object(1, "{}")), func(b *server.Batch) { b.Owner = 5 })
	again := lease(t, st)["s0"]
	kit.Check(t, again.Position == d.Position && again.Summary.Title == "t" && stateOf(t, st, again) == "\x00state" &&
		again.Version > d.Task.Version, "%+v", again)
}

// stale: what was derived from something else than what is stored is refused, and nothing of it kept.
func (s suite) stale(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	for _, name := range []string{"twice", "behind", "older", "epoch", "reset", "forgotten", "ahead"} {
		put(t, st, batch(name, object(0, "{}"), object(2, "{}")))
	}
	put(t, st, batch("older", object(5, "{}")), func(b *server.Batch) { b.Head.Generation, b.Head.RewoundTo = 1, 5 })
	tasks := lease(t, st)
	save(t, st, tasks["twice"], server.Derivation{})
	put(t, st, batch("behind", object(1, "{}")))
	put(t, st, batch("older", object(3, "{}")))
	put(t, st, batch("epoch", object(0, "{}")), func(b *server.Batch) { b.Head.Epoch = "newer" })
	b := batch("epoch", object(3, "{}")) // of the older one
	put(t, st, b)
	kit.Try(st.Forget(ctx, all, "forgotten", 0, start)).Must(t)
	put(t, st, batch("ahead", object(3, "{}")))
	for name, task := range tasks {
		d := server.Derivation{Task: task, Position: server.Position{Epoch: 1, Line: 3}, Done: true, Summary: server.Summary{Title: "stale"}}
		err := st.SaveDerived(ctx, &d)
		want := name != "ahead" && name != "reset"
		kit.Check(t, errors.Is(err, server.ErrStale) == want && (want || err == nil), "%s: %v", name, err)
		f, err := st.SummaryOf(ctx, task.Stream)
		kit.Check(t, err == nil && (f.Title == "stale") == (name == "ahead" || name == "reset"), "%s: %+v, %v", name, f, err)
	}
	kit.Must(t, st.ResetDerived(ctx))
	d := server.Derivation{Task: tasks["reset"], Position: server.Position{Epoch: 1, Line: 9}}
	d.Task.Position = server.Position{Epoch: 1, Line: 3}
	kit.Err(t, "after a reset", server.ErrStale)(nil, st.SaveDerived(ctx, &d))
}

// redoSteps are batches that come one after the other, and whether a stream begins again after each.
var redoSteps = []struct {
	name  string
	redo  bool
	batch func() *server.Batch
}{
	{"appended", false, func() *server.Batch { return batch("s", object(2, "{}")) }},
	{"repeated", false, func() *server.Batch { return batch("s", object(0, "{}"), object(2, "{}")) }},
	{"replaced", true, func() *server.Batch { return batch("s", object(1, "[]")) }},
	{"with a hole", false, func() *server.Batch { return batch("s", object(5, "{}")) }},
	{"filled", true, func() *server.Batch { return batch("s", object(4, "{}")) }},
	{"rewound", false, func() *server.Batch {
		b := batch("s", object(3, "{}"))
		b.Head.Generation, b.Head.RewoundTo = 4, 3
		return b
	}},
	{"rewound with nothing new", false, func() *server.Batch {
		b := batch("s")
		b.Head.Generation, b.Head.RewoundTo = 5, 1
		return b
	}},
	{"begins earlier", true, func() *server.Batch {
		b := batch("s")
		b.Head.Generation, b.Head.RewoundTo = 5, 0
		return b
	}},
	{"generation between", true, func() *server.Batch {
		b := batch("s", object(9, "{}"))
		b.Head.Generation, b.Head.RewoundTo = 2, 2
		return b
	}},
	{"new epoch", false, func() *server.Batch {
		b := batch("s", object(0, "{}"))
		b.Head.Epoch = "newer"
		return b
	}},
	{"old epoch", true, func() *server.Batch { return batch("s", object(7, "{}")) }},
	{"old epoch's next generation", true, func() *server.Batch {
		b := batch("s", object(7, "{}"))
		b.Head.Generation, b.Head.RewoundTo = 9, 7
		return b
	}},
}

// redo: lines stored behind the end, in an older generation or epoch, or instead of others, let a stream begin again;
// appended ones and repetitions do not.
func (s suite) redo(t *testing.T) {
	st := s.open(t)
	put(t, st, batch("s", object(0, "{}"), object(1, "{}")))
	save(t, st, lease(t, st)["s"], server.Derivation{State: []byte("x")})
	for _, step := range redoSteps {
		put(t, st, step.batch())
		task, ok := lease(t, st)["s"]
		kit.Require(t, ok, "%s: nothing to derive", step.name)
		kit.Equal(t, step.name, task.Position == (server.Position{}) && stateOf(t, st, task) == "", step.redo)
		save(t, st, task, server.Derivation{State: []byte("x")})
	}
}

// renew: what an older format derived is derived again, and seen until then.
func (s suite) renew(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	for i, name := range []string{"old", "new"} {
		put(t, st, batch(name, object(0, "{}")))
		save(t, st, lease(t, st)[name], server.Derivation{Format: int64(i + 1), State: []byte("x"), Summary: server.Summary{Title: name}})
	}
	if err := st.Renew(ctx, 1); err != nil || lag(t, st) != 0 {
		t.Errorf("%v, %d lag", err, lag(t, st))
	}
	kit.Must(t, st.Renew(ctx, 2))
	tasks := lease(t, st)
	kit.Check(t, len(tasks) == 1 && tasks["old"].Position == (server.Position{}) && stateOf(t, st, tasks["old"]) == "",
		"%+v", tasks)
	f, err := st.SummaryOf(ctx, tasks["old"].Stream)
	kit.Check(t, err == nil && f.Title == "old", "%+v, %v", f, err)
	save(t, st, tasks["old"], server.Derivation{Format: 2})
	kit.Equal(t, "lag", lag(t, st), 0)
}

// lags: a session lags until all of it is derived, for those who may see it.
func (s suite) lags(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ann, _ := members(t, st)
	expect := func(when string, want map[string]bool) {
		t.Helper()
		for _, scope := range []server.Scope{all, {User: ann.ID}} {
			for _, session := range []string{"", "anns", "bobs", "none"} {
				got, err := st.Lags(ctx, scope, server.DropQuery{Session: session})
				want := want[session] && (scope.All || session != "bobs")
				kit.Check(t, err == nil && got == want, "%s: Lags(%+v, %q) is %t, %v", when, scope, session, got, err)
			}
		}
	}
	expect("stored", map[string]bool{"": true, "anns": true, "bobs": true})
	deriveAll(t, st)
	expect("derived", nil)
	put(t, st, batch("bobs", object(2, `{"a":2}`)))
	kit.Equal(t, "after another line", kit.Try(st.Lags(ctx, all, server.DropQuery{Session: "bobs"})).Must(t), true)
}

// reset: nothing derived is left, everything is to be derived again, no line is touched.
func (s suite) reset(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	members(t, st)
	deriveAll(t, st)
	kit.Must(t, st.ResetDerived(ctx))
	rows, err := st.Usage(ctx, all, server.UsageQuery{By: []string{"model"}})
	drops, err2 := st.Drops(ctx, all, server.DropQuery{Session: "", Limit: 9})
	err = errors.Join(err, err2)
	kit.Check(t, err == nil && len(rows) == 0 && len(drops) == 0, "%+v, %+v, %v", rows, drops, err)
	expectNames(t, "search after a reset", searched(t, st, all, server.SearchQuery{Text: "needle"}))
	kit.Equal(t, "lag", lag(t, st), 6)
	deriveAll(t, st)
	expectNames(t, "search after deriving again", searched(t, st, all, server.SearchQuery{Text: "needle"}), "anns", "bobs", "nobodys")
}

// derivers: several at once, while lines come in, derive everything, each stretch once.
func (s suite) derivers(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	const streams, lines = 4, 30
	var wg sync.WaitGroup
	for w := range streams {
		wg.Go(func() {
			for i := range int64(lines) {
				kit.Should(t, st.Put(ctx, batch(fmt.Sprint("s", w), object(i, says("prompt", fmt.Sprint("line ", i))))))
				kit.Try(st.Find(ctx, all, server.SessionQuery{Page: server.Page{Limit: 3}})).Should(t)
			}
		})
	}
	var done atomic.Bool
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			for !done.Load() || lag(t, st) > 0 {
				tasks, err := st.Lagging(ctx, 2)
				if err != nil {
					t.Error(err)
					return
				}
				for _, task := range tasks {
					if err := deriveLines(t, st, task); err != nil && !errors.Is(err, server.ErrStale) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	done.Store(true)
	workers.Wait()
	for w := range streams {
		hits, err := st.Search(ctx, all, server.SearchQuery{Text: "line", Session: fmt.Sprint("s", w), Limit: 100})
		kit.Check(t, err == nil && len(hits.List) == lines, "stream %d: %d lines derived, %v", w, len(hits.List), err)
	}
}

// deriveLines derives a text of each new line of a task.
func deriveLines(t *testing.T, st full, task server.Task) error {
	to := place(t, st, task)
	d := server.Derivation{Task: task, Position: to, Done: true}
	for i := task.Position.Line; i < to.Line; i++ {
		l := object(i, says("prompt", fmt.Sprint("line ", i)))
		d.Texts = append(d.Texts, said(l, start.Add(time.Duration(i)*time.Second))...)
	}
	return st.SaveDerived(t.Context(), &d)
}
