package tail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// Roots come and go while files grow: what is followed arrives once and whole, what is not is left alone, and when it
// is followed again it goes on where it stopped.
func TestSetRoots(t *testing.T) {
	w := newWorld(t)
	other := Root{Dir: filepath.Join(filepath.Dir(w.root), "other")}
	first := w.cfg.Roots[0]
	w.write("p/a.jsonl", lines("a", 3, 100))
	w.write("p/a/subagents/agent-1.jsonl", lines("agent", 2, 100))
	w.write("../other/q/b.jsonl", lines("b", 4, 100))
	before := w.startWith("p/a.jsonl")
	w.sync()
	kit.Equal(t, "files before", w.tail.Stats().Tracked, 2)

	w.tail.SetRoots([]Root{other})
	w.main("../other/q/b.jsonl")
	w.until("the first root is let go and the other is read", func() bool {
		s := w.tail.Stats()
		return s.Tracked == 1 && s.UnreadFiles == 0 && s.Lines == 4
	})
	if s := w.tail.Stats(); s.Mains != 1 || s.Vanished != 0 || s.Bytes != int64(len(w.read("../other/q/b.jsonl"))) || s.Lines != 4 {
		t.Errorf("stats %+v", s)
	}
	n := len(w.tail.Present())
	kit.Check(t, n == 1 && len(w.tail.Here([]FileID{before.File.ID})) == 0, "%d files present, want 1", n)
	w.add("p/a.jsonl", lines("more", 2, 100))
	w.write("p/new.jsonl", lines("new", 1, 100))
	w.sync()
	got := w.mem.named("a")
	kit.Check(t, len(got) == 1 && got[0].Cursor.Line == 3 && got[0].Gone == 0, "a file that is not followed: %+v", got)
	kit.Equal(t, "a new file that is not followed was delivered", len(w.mem.named("new")), 0)

	w.tail.SetRoots([]Root{other, first})
	after := w.main("p/a.jsonl")
	kit.Check(t, after.File.ID == before.File.ID && after.Cursor.Generation == 0, "the file has another identity: %+v, was %+v", after.File, before.File)
	w.main("p/new.jsonl")
	w.arrived("p/a/subagents/agent-1.jsonl", "a/agent-1", 1)
	w.sync()
	s := w.tail.Stats()
	kit.Check(t, s.Tracked == 4 && s.Rewinds == 0, "stats %+v", s)
	w.add("p/a.jsonl", lines("last", 1, 100)) // watched again
	w.main("p/a.jsonl")
}

// The prompt history next to a root can be left out and taken in again.
func TestSetRootsHistory(t *testing.T) {
	w := newWorld(t)
	with := Root{Dir: w.root, History: filepath.Join(filepath.Dir(w.root), "history.jsonl")}
	w.write("p/a.jsonl", lines("a", 3, 100))
	w.write("../history.jsonl", lines("h", 3, 100))
	w.startWith("p/a.jsonl")
	w.tail.SetRoots([]Root{with})
	w.arrived("../history.jsonl", "history", 1)
	w.tail.SetRoots([]Root{{Dir: w.root}})
	w.until("the history is let go", func() bool { return w.tail.Stats().Tracked == 1 })
	w.add("../history.jsonl", lines("i", 1, 100))
	w.sync()
	got := w.mem.named("history")
	kit.Check(t, len(got) == 1 && got[0].Cursor.Line == 3, "the history goes on: %+v", got)
	w.tail.SetRoots([]Root{with})
	w.arrived("../history.jsonl", "history", 1)
}

// Roots that change all the time, while files grow and syncs wait, lose nothing and hang nobody.
func TestSetRootsOften(t *testing.T) {
	w := newWorld(t)
	other := Root{Dir: filepath.Join(filepath.Dir(w.root), "other")}
	first := w.cfg.Roots[0]
	w.start()
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 60 {
			w.tail.SetRoots([][]Root{{first}, {other}, {other, first}, {}}[i%4])
			w.add(fmt.Sprintf("p%d/a%d.jsonl", i%3, i), lines(fmt.Sprint("a", i), 20, 200))
			w.add(fmt.Sprintf("../other/q/b%d.jsonl", i%5), lines(fmt.Sprint("b", i), 20, 200))
		}
	})
	wg.Go(func() {
		for range 20 {
			w.sync()
		}
	})
	wg.Wait()
	w.tail.SetRoots([]Root{first, other})
	for i := range 60 {
		w.main(fmt.Sprintf("p%d/a%d.jsonl", i%3, i))
	}
	for i := range 5 {
		w.main(fmt.Sprintf("../other/q/b%d.jsonl", i))
	}
	s := w.tail.Stats()
	kit.Check(t, s.Rewinds == 0 && s.Vanished == 0, "stats %+v", s)
}

// What vanishes while nobody follows it is missed when its root is followed again, and no watch is kept meanwhile.
func TestSetRootsGone(t *testing.T) {
	w := newWorld(t)
	roots := w.cfg.Roots
	w.write("p/a.jsonl", lines("a", 3, 100))
	w.write("p/b.jsonl", lines("b", 3, 100))
	w.startWith("p/a.jsonl")
	w.main("p/b.jsonl")
	w.until("folders are watched", func() bool { return w.tail.Stats().Watches > 0 })
	w.tail.SetRoots(nil)
	w.until("nothing is followed", func() bool { return w.tail.Stats().Tracked == 0 })
	s := w.tail.Stats()
	kit.Check(t, s.Watches == 0 && s.Bytes == 0 && s.UnreadFiles == 0, "stats %+v", s)
	w.must(os.Remove(w.path("p/a.jsonl")))
	w.tail.SetRoots(roots)
	w.until("one is back, one is missed", func() bool { s := w.tail.Stats(); return s.Tracked == 1 && s.Vanished == 1 })
}

// A Sync does not wait for files that are no longer followed.
func TestSetRootsEndsSync(t *testing.T) {
	w := newWorld(t)
	refused := make(chan struct{}, 1)
	w.mem.fail = func(int) error {
		select {
		case refused <- struct{}{}:
		default:
		}
		return errors.New("disk full")
	}
	w.write("p/a.jsonl", lines("a", 3, 100))
	w.start()
	<-refused
	over := make(chan error, 1)
	go func() { over <- w.tail.Sync(context.Background()) }()
	<-refused // it waits for a delivery that fails again and again
	w.tail.SetRoots(nil)
	w.until("the sync is over", func() bool {
		select {
		case err := <-over:
			kit.Should(t, err)
			return true
		default:
			return false
		}
	})
}
