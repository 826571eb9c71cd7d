package tail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

func TestLater(t *testing.T) {
	w := newWorld(t)
	later := true
	w.mem.answer = func(c *Chunk) Result { return kit.If(later && c.File.Name == "a", Result{Err: ErrLater}, Result{}) }
	w.write("p/a.jsonl", lines("a", 3, 100))
	w.follow("p/b.jsonl", lines("b", 3, 100))
	for range 2 {
		w.add("p/a.jsonl", lines("c", 1, 100)) // is offered again, and refused again
		err := w.tail.Sync(t.Context())
		e, ok := errors.AsType[*WaitingError](err)
		kit.Check(t, ok && e.Later == 1 && e.NoSpace == 0 && len(e.Files) == 1, "sync: %v", err)
	}
	w.until("it waits", func() bool { // the event of the last write may come after the Sync, and offers it once more
		w.tail.mu.Lock()
		defer w.tail.mu.Unlock()
		n := 0
		for _, f := range w.tail.table.byID {
			if f.waiting {
				n++
			}
		}
		return n == 1 && w.tail.stats.unreadFiles == 0
	})
	w.mem.do(func() { later = false })
	w.tail.Wake()
	w.main("p/a.jsonl")
	w.sync()
	s := w.tail.Stats()
	kit.Check(t, s.UnreadFiles == 0 && s.UnreadBytes == 0, "stats %+v", s)
}

func TestLaterComesBack(t *testing.T) {
	w := newWorld(t)
	w.slow()
	n := 0
	w.mem.answer = func(*Chunk) Result {
		if n++; n < 4 {
			return Result{Err: ErrLater, After: 10 * time.Millisecond}
		}
		return Result{}
	}
	w.follow("p/a.jsonl", lines("a", 3, 100))
}

func TestReread(t *testing.T) {
	w := newWorld(t)
	asked := false
	w.mem.answer = func(c *Chunk) Result {
		if c.From.Line > 0 && !asked {
			asked = true
			return Result{Err: ErrReread}
		}
		return Result{}
	}
	w.follow("p/a.jsonl", lines("a", 300, 1000))
	w.add("p/a.jsonl", lines("b", 1, 1000))
	k := w.main("p/a.jsonl")
	kit.Check(t, k.Cursor.Generation == 1 && k.sent == int64(len(k.content))+int64(len(lines("a", 300, 1000))),
		"the sink asked: sent %d, %+v", k.sent, k.Cursor)
	w.tail.Reread(k.File.ID, 12345)
	w.until("it comes again", func() bool { return w.mem.named("a")[0].Cursor.Generation == 2 })
	w.main("p/a.jsonl")
	w.stop()
	w.prep = func(t *Tailer) { t.Reread(k.File.ID) } // before anything is loaded
	w.start()
	w.until("it comes again", func() bool { return w.mem.named("a")[0].Cursor.Generation == 3 })
	w.main("p/a.jsonl")
}

func TestStale(t *testing.T) {
	w := newWorld(t)
	body := lines("a", 3, 100)
	k := w.follow("p/a.jsonl", body)
	w.mem.do(func() { // another caller set it back to the start
		f := w.mem.files[k.File.ID]
		f.Cursor, f.content, f.marks = Cursor{Generation: 7}, nil, nil
	})
	w.add("p/a.jsonl", lines("b", 1, 100))
	k = w.main("p/a.jsonl")
	kit.Check(t, k.Cursor.Generation == 7, "%+v", k.Cursor)
}

func TestDeliverFails(t *testing.T) {
	w := newWorld(t)
	w.mem.fail = func(n int) error { return kit.If[error](n < 4, errors.New("disk full"), nil) }
	for i := range 20 {
		w.write(fmt.Sprintf("p/s%d.jsonl", i), lines("a", 3, 100))
	}
	w.start()
	for i := range 20 {
		w.main(fmt.Sprintf("p/s%d.jsonl", i))
	}
	w.sync()
	w.mem.do(func() { kit.Check(t, w.mem.calls <= 50, "%d calls", w.mem.calls) })
	kit.Check(t, retry(1) == 100*time.Millisecond && retry(3) == 400*time.Millisecond && retry(100) == 5*time.Second,
		"wrong delays")
}

func TestRoom(t *testing.T) {
	w := newWorld(t)
	w.mem.noSpace[1] = true // an import may not go on
	w.write("p/old.jsonl", lines("old", 3, 100))
	w.age("p/old.jsonl", time.Hour)
	w.follow("p/new.jsonl", lines("new", 3, 100))
	err := w.tail.Sync(t.Context())
	e, ok := errors.AsType[*WaitingError](err)
	kit.Check(t, ok && e.NoSpace == 1 && e.Later == 0, "sync: %v", err)
	s := w.tail.Stats()
	kit.Check(t, s.Importing && s.UnreadFiles == 1, "stats %+v", s)
	w.mem.do(func() { w.mem.noSpace[0] = true })
	w.add("p/new.jsonl", lines("more", 3, 100))
	err = w.tail.Sync(t.Context())
	e, ok = errors.AsType[*WaitingError](err)
	kit.Check(t, ok && e.NoSpace == 2 && e.Later == 0, "sync: %v", err)
	w.mem.do(func() { w.mem.noSpace = [2]bool{} })
	w.tail.Wake()
	w.main("p/old.jsonl")
	w.main("p/new.jsonl")
	w.sync()
	kit.Check(t, !w.tail.Stats().Importing, "still importing")
}

func TestRoomIsAskedForAgain(t *testing.T) {
	w := newWorld(t)
	w.mem.noSpace[0] = true
	w.write("p/a.jsonl", "{}\n")
	w.start()
	w.until("it waits", func() bool { return w.tail.queue.waitsForSpace(w.tail) })
	w.mem.do(func() { w.mem.noSpace[0] = false }) // and nobody wakes it
	w.main("p/a.jsonl")
}

func TestImportNewestFirstAndBehindTheLive(t *testing.T) {
	w := newWorld(t)
	w.cfg.Workers, w.cfg.TurnBytes = 1, 64<<10
	for i := range 6 {
		rel := fmt.Sprintf("p/old%d.jsonl", i)
		w.write(rel, lines("old", 50, 1000))
		w.age(rel, time.Duration(10+i)*time.Hour)
	}
	w.write("p/big.jsonl", lines("big", 2000, 1000))
	w.age("p/big.jsonl", 5*time.Hour)
	held, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.mem.note = func(chunks []Chunk) {
		if !chunks[0].Live { // every worker that may import is stuck
			once.Do(func() { close(held) })
			<-release
		}
	}
	w.start()
	<-held
	w.write("p/live.jsonl", lines("live", 3, 100))
	k := w.main("p/live.jsonl")
	kit.Check(t, k.live, "not said to be live")
	close(release)
	w.main("p/big.jsonl")
	for i := range 6 {
		k := w.main(fmt.Sprintf("p/old%d.jsonl", i))
		kit.Check(t, !k.live, "old%d is said to be live", i)
	}
	w.mem.do(func() {
		var old []string
		for _, name := range w.mem.order {
			if strings.HasPrefix(name, "old") {
				old = append(old, name)
			}
		}
		kit.Equal(t, "order", strings.Join(old, " "), "old0 old1 old2 old3 old4 old5")
	})
}

func TestBurstIsOneRound(t *testing.T) {
	w := newWorld(t)
	for i := range 500 {
		rel := fmt.Sprintf("p/s%d.jsonl", i)
		w.write(rel, lines("a", 2, 100))
		w.age(rel, time.Hour)
	}
	w.start()
	for i := range 500 {
		w.main(fmt.Sprintf("p/s%d.jsonl", i))
	}
	w.mem.do(func() { kit.Check(t, w.mem.calls <= 10, "%d calls for 500 small files", w.mem.calls) })
}

func TestUpdateIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	n := 0
	w.mem.update = func(context.Context, []Tracked) error {
		if n++; n < 3 {
			return errors.New("disk full")
		}
		return nil
	}
	w.follow("p/a.jsonl", "{}\n")
	w.must(os.Remove(w.path("p/a.jsonl")))
	w.until("the vanishing is stored", func() bool { return w.mem.named("a")[0].Gone != 0 })
}

// TestSyncBesideAppends: Sync ends although a file is appended to whenever it is read, with what was there at the call.
func TestSyncBesideAppends(t *testing.T) {
	w := newWorld(t)
	w.write("p/a.jsonl", lines("a", 300, 1000))
	w.write("p/b.jsonl", lines("a", 3, 1000))
	over := make(chan struct{})
	w.prep = func(tl *Tailer) {
		tl.faults.read = func(path string) error {
			select {
			case <-over:
				return nil
			default:
			}
			if path != w.path("p/a.jsonl") {
				return nil
			}
			w.add("p/a.jsonl", lines("b", 1, 1000))
			w.until("the change is seen", func() bool {
				tl.mu.Lock()
				defer tl.mu.Unlock()
				for _, f := range tl.table.byID {
					if f.base == "a.jsonl" && f.changedAgain {
						return true
					}
				}
				return false
			})
			return nil
		}
	}
	ended := sync.OnceFunc(func() { close(over) })
	defer ended()
	w.start()
	w.until("it is written to", func() bool { all := w.mem.named("a"); return len(all) == 1 && all[0].chunks > 3 })
	for range 3 {
		before := len(w.read("p/a.jsonl"))
		w.sync()
		got := w.mem.named("a")[0].Cursor.Offset
		kit.Check(t, got >= int64(before), "it ended at %d, when %d bytes had been there", got, before)
	}
	ended()
	w.until("the rest arrives", func() bool { // a line may come just now
		return bytes.Equal(w.mem.named("a")[0].content, w.read("p/a.jsonl"))
	})
}

func TestSyncEndsWithRun(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.sync()
	w.stop()
	kit.Err(t, "sync", ErrStopped)(w.tail.Sync(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	kit.Err(t, "sync", context.Canceled)(New(w.cfg, w.mem, w.mem).Sync(ctx))
}

// TestNotTaken: Stats says why the sink does not take chunks, for as long as it does not.
func TestNotTaken(t *testing.T) {
	w := newWorld(t)
	full := errors.New("no space left")
	var room atomic.Bool
	w.mem.fail = func(int) error { return kit.If[error](room.Load(), nil, full) }
	w.write("p/a.jsonl", lines("a", 3, 100))
	w.start()
	w.until("it says why", func() bool { return errors.Is(w.tail.Stats().NotTaken, full) })
	room.Store(true)
	w.until("it is over", func() bool { s := w.tail.Stats(); return s.NotTaken == nil && s.UnreadFiles == 0 })
}

func TestClock(t *testing.T) {
	start := time.Date(2026, 8, 20, 9, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ wall, mono, want time.Duration }{
		{time.Second, time.Second, 0},
		{0, 4 * time.Second, 0},
		{time.Hour, time.Second, time.Hour - time.Second},
		{-time.Hour, time.Second, -time.Hour - time.Second},
		{time.Hour, time.Hour, 0},
	} {
		c := clock{Wall: start, Mono: 5}
		kit.Equal(t, fmt.Sprintf("wall %v, monotonic %v: jump", tt.wall, tt.mono), c.Jump(start.Add(tt.wall), 5+tt.mono),
			tt.want)
	}
}

func TestSettled(t *testing.T) {
	second := int64(time.Second)
	for name, c := range map[string]struct {
		at   int64
		want time.Duration
	}{
		"whole seconds":      {7 * second, coarseTick},
		"whole milliseconds": {7*second + 5*int64(time.Millisecond), coarseTick},
		"nanoseconds":        {7*second + 123456789, fineTick},
	} {
		want := c.want
		if !ownChangeTime {
			want = coarseTick
		}
		kit.Equal(t, name, (Stat{ChangeTime: c.at}).settleTime(), want)
	}
}

// TestFreshStatProvesNothing: what was verified counts for a stat only if no other write can have left it as it is, by
// the clock that dated it: a file server's may be hours behind.
func TestFreshStatProvesNothing(t *testing.T) {
	for age, want := range map[time.Duration]bool{-time.Hour: false, 0: false, time.Hour: true} {
		for _, behind := range []time.Duration{0, 400 * 24 * time.Hour} {
			tl := &Tailer{started: time.Now(), wall: time.Now}
			there := time.Now().Add(-behind)
			tl.age(Stat{Device: 2, ChangeTime: time.Now().Add(time.Hour).UnixNano()})
			if age > 0 {
				tl.age(Stat{Device: 1, ChangeTime: there.UnixNano()})
			}
			st := Stat{Device: 1, Size: 3, ChangeTime: there.Add(-age).UnixNano()}
			l := inspection{t: tl, st: st, verified: true, chunk: &Chunk{}}
			if err := l.fillTracked(); err != nil || l.verified != want || (l.chunk.Tracked.Verified == st) != want {
				t.Errorf("changed %s ago, a clock %s behind: verified %t, %+v, %v", age, behind, l.verified, l.chunk.Tracked.Verified, err)
			}
		}
	}
}
