package daemon

import (
	"context"
	"errors"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/session"
)

// onlooker is an observer that notes which prompts and answers it was told of, and whether they were watched.
type onlooker struct {
	mu   sync.Mutex
	seen []string      // "prompt one", or "prompt one!" when it was watched; guarded by mu
	fail error         // of end; guarded by mu
	gate chan struct{} // end waits until it is closed; nil: it does not
}

func (*onlooker) begin(*pass) {}

func (o *onlooker) event(_ *pass, e *session.Event, watched bool) {
	if e.Kind != session.PromptEvent && e.Kind != session.AnswerEvent {
		return
	}
	text := e.Text
	if watched {
		text += "!"
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, text)
}

func (o *onlooker) end(*pass) error {
	if o.gate != nil {
		<-o.gate
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.fail
}

// take answers what was seen, and forgets it.
func (o *onlooker) take() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	seen := o.seen
	o.seen = nil
	return seen
}

// startSeen is start, with an onlooker.
func (w *world) startSeen(o *onlooker) *Daemon {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	d, err := open(ctx, w.cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	d.derive.observers = append(d.derive.observers, o)
	ln, err := control.Listen(w.cfg.Socket)
	if err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- d.serve(ctx, ln) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-ended, d.db.Close()); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(w.stop)
	w.client = control.Dial(w.cfg.Socket)
	return d
}

func (w *world) expect(o *onlooker, what string, want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, o.take()); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Watched is what is written while a daemon looks on, once: not what was there before, not what is read again.
func TestWatched(t *testing.T) {
	w, o := newWorld(t), &onlooker{}
	a, b := chat{session: sessionA}, chat{session: sessionB}
	w.write(transcriptOf(sessionA), a.prompt("old"))
	w.startSeen(o)
	w.sync()
	w.expect(o, "an import")
	w.messages(sessionA)
	w.expect(o, "a question about history", "old")
	w.write(transcriptOf(sessionA), a.answer("new"))
	w.sync()
	w.expect(o, "a line", "new!")
	w.write(transcriptOf(sessionB), b.prompt("born"))
	w.sync()
	w.expect(o, "a new file", "born!")
	w.stop()
	w.startSeen(o)
	w.sync()
	w.messages(sessionA)
	w.messages(sessionB)
	w.expect(o, "a restart")
	w.stop()
	w.write(transcriptOf(sessionA), a.prompt("meanwhile"))
	w.write(transcriptOf("0c0c0c0c-0000-4000-8000-000000000003"), (&chat{session: "0c0c0c0c-0000-4000-8000-000000000003"}).prompt("unseen"))
	w.startSeen(o)
	w.sync()
	w.expect(o, "what a watched session got while no daemon ran", "meanwhile!")
	w.messages("0c0c")
	w.expect(o, "a session that came while no daemon ran", "unseen")
}

// What was watched before it could be stored is watched after a crash; what was stored is not told again.
func TestWatchedOverCrash(t *testing.T) {
	w, o := newWorld(t), &onlooker{}
	a := chat{session: sessionA}
	w.startSeen(o)
	w.sync() // has listed everything once
	w.write(transcriptOf(sessionA), a.prompt("one"))
	w.sync()
	w.write(transcriptOf(sessionA), a.prompt("two"))
	w.sync()
	w.expect(o, "two lines", "one!", "two!")
	w.stop()
	w.emptyState("sessions", "messages") // as if nothing had been stored since
	w.startSeen(o)
	w.sync()
	w.expect(o, "nothing was stored", "one!", "two!")
	w.stop()
	w.emptyState("messages") // as the bound on their size does
	w.startSeen(o)
	w.sync()
	w.messages(sessionA)
	w.expect(o, "the fold was dropped, not the place", "one", "two")
	w.write(transcriptOf(sessionA), a.prompt("three"))
	w.sync()
	w.expect(o, "behind the place", "three!")
}

// emptyState removes what buckets of the stopped daemon's state hold.
func (w *world) emptyState(buckets ...string) {
	w.t.Helper()
	db, err := bbolt.Open(filepath.Join(w.cfg.StateDir, "state.db"), 0o600, &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		w.t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			if err := tx.DeleteBucket([]byte(name)); err != nil {
				return err
			}
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		w.t.Fatal(err)
	}
}

// History that a fork copied is not watched, though the file is new: its records say whose they are, or only its
// answers do.
func TestCopiesAreNotWatched(t *testing.T) {
	w, o := newWorld(t), &onlooker{}
	w.startSeen(o)
	w.sync()
	a := chat{session: sessionA}
	forked := func(key string, value any, kind, text string) string {
		block := []any{map[string]any{"type": "text", "text": text}}
		m := map[string]any{"type": kind, "message": map[string]any{"role": kind, "content": block}}
		if kind == "assistant" {
			m["message"] = map[string]any{"id": text, "role": kind, "model": "m", "content": block}
		}
		if key != "" {
			m[key] = value
		}
		return a.record(m)
	}
	origin := map[string]any{"sessionId": sessionB, "messageUuid": "x"}
	w.write(transcriptOf(sessionA), forked("forkedFrom", origin, "user", "theirs")+forked("forkedFrom", origin, "assistant", "theirs too")+
		forked("requestSessionId", sessionB, "assistant", "an answer of theirs")+forked("", nil, "user", "follows a copy")+
		forked("requestSessionId", sessionA, "assistant", "own")+forked("", nil, "user", "mine"))
	w.sync()
	w.expect(o, "a fork", "theirs", "theirs too", "an answer of theirs", "follows a copy", "own!", "mine!")
}

// A rewrite inside what was watched is watched from where it differs; one of what was there before is history.
func TestWatchedAfterRewrite(t *testing.T) {
	w, o := newWorld(t), &onlooker{}
	a, b := chat{session: sessionA}, chat{session: sessionB}
	w.write(transcriptOf(sessionB), b.prompt("old"))
	w.startSeen(o)
	w.sync()
	one := a.prompt("one")
	two := a.answer("two")
	w.write(transcriptOf(sessionA), one)
	w.sync()
	w.write(transcriptOf(sessionA), two)
	w.sync()
	w.expect(o, "as written", "one!", "two!")
	fork := chat{session: sessionA, leaf: "", n: 10}
	w.rewrite(transcriptOf(sessionA), one+fork.answer("TWO"))
	w.sync()
	w.expect(o, "rewritten from nothing that is marked", "one!", "TWO!")
	w.write(transcriptOf(sessionB), b.answer("more"))
	w.sync()
	w.take(o, "old", "more!")
	other := chat{session: sessionB}
	w.rewrite(transcriptOf(sessionB), other.prompt("OLD")+other.answer("MORE"))
	w.sync()
	w.expect(o, "history rewritten")
	w.write(transcriptOf(sessionB), other.prompt("next"))
	w.sync()
	w.expect(o, "after it", "OLD", "MORE", "next!")
}

func (w *world) take(o *onlooker, want ...string) {
	w.t.Helper()
	w.expect(o, "as written", want...)
}

// Delivering everything to another server is no news.
func TestAnotherServerIsNoNews(t *testing.T) {
	w, o := newFileWorld(t), &onlooker{}
	w.set("server_url", quote(w.cfg.ServerURL))
	w.load()
	a := chat{session: sessionA}
	w.startSeen(o)
	w.sync()
	w.write(transcriptOf(sessionA), a.prompt("one"))
	w.sync()
	w.take(o, "one!")
	other := httptest.NewServer(newMemServer())
	defer other.Close()
	w.set("server_url", quote(other.URL))
	w.load()
	if _, err := w.client.Reload(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.sync()
	w.expect(o, "delivered anew")
	w.write(transcriptOf(sessionA), a.prompt("two"))
	w.sync()
	w.expect(o, "after it", "one", "two!")
}

func TestWatch(t *testing.T) {
	at := func(offset int64) tail.Cursor { return tail.Cursor{Offset: offset} }
	chunk := func(prev, from, to, before, size int64) *tail.Chunk {
		c := &tail.Chunk{Prev: at(prev), From: at(from), To: at(to), Before: before}
		c.File.Stat.Size = size
		return c
	}
	watched := func(from int64) state.Facts { return state.Facts{Watched: true, WatchedFrom: from} }
	for name, x := range map[string]struct {
		was   state.Facts
		chunk *tail.Chunk
		again bool
		want  state.Facts
	}{
		"history":                      {state.Facts{}, chunk(0, 0, 50, 100, 100), false, state.Facts{}},
		"the end of history":           {state.Facts{}, chunk(50, 50, 100, 100, 100), false, state.Facts{}},
		"history and what came since":  {state.Facts{}, chunk(50, 50, 120, 100, 120), false, watched(100)},
		"a new file":                   {state.Facts{}, chunk(0, 0, 50, 0, 50), false, watched(0)},
		"a line":                       {state.Facts{}, chunk(100, 100, 120, 0, 120), false, watched(100)},
		"a line more":                  {watched(100), chunk(120, 120, 130, 0, 130), false, watched(100)},
		"a rewrite of what is watched": {watched(100), chunk(130, 110, 140, 0, 150), false, watched(100)},
		"a rewrite of history":         {watched(100), chunk(130, 90, 140, 0, 150), false, watched(150)},
		"history cut to nothing":       {watched(100), chunk(130, 0, 0, 0, 0), false, watched(130)},
		"a rewrite, never watched":     {state.Facts{}, chunk(130, 90, 140, 0, 150), false, state.Facts{WatchedFrom: 150}},
		"more of that rewrite":         {state.Facts{WatchedFrom: 150}, chunk(140, 140, 150, 0, 150), false, state.Facts{WatchedFrom: 150}},
		"behind that rewrite":          {state.Facts{WatchedFrom: 150}, chunk(140, 140, 160, 0, 160), false, watched(150)},
		"delivered again":              {watched(100), chunk(130, 0, 130, 0, 130), true, watched(130)},
	} {
		got := x.was
		watch(&got, x.chunk, x.again)
		if diff := cmp.Diff(x.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
