package tail

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/ccship/ccship/e2e/kit"
)

// slow makes listings so rare that only events, or what is tested, can have found anything.
func (w *world) slow() {
	w.cfg.ScanActive, w.cfg.ScanAll, w.cfg.PollInterval = time.Hour, time.Hour, time.Hour
}

func TestEventsAlone(t *testing.T) {
	w := newWorld(t)
	w.slow()
	w.follow("p/old.jsonl", "{}\n")
	w.write("p/a.jsonl", "{}\n")
	w.main("p/a.jsonl")
	w.add("p/a.jsonl", "{}\n")
	w.main("p/a.jsonl")
	w.write("new/b.jsonl", "{}\n")
	w.main("new/b.jsonl")
	w.write("new/b/subagents/workflows/r/agent-1.jsonl", "{}\n")
	w.arrived("new/b/subagents/workflows/r/agent-1.jsonl", "b/agent-1", 1)
	w.add("new/b/subagents/workflows/r/agent-1.jsonl", "{}\n")
	w.arrived("new/b/subagents/workflows/r/agent-1.jsonl", "b/agent-1", 1)
	w.rename("new/b.jsonl", "p/b.jsonl")
	w.main("p/b.jsonl")
	w.must(os.Remove(w.path("p/old.jsonl")))
	w.until("the removal is seen", func() bool { return w.tail.Stats().Vanished == 1 })
	s := w.tail.Stats()
	kit.Check(t, s.Watch == "events" && s.WatchReason == "", "watch %q, %q", s.Watch, s.WatchReason)
}

func TestResumedSessionIsWatchedAgain(t *testing.T) {
	w := newWorld(t)
	w.slow()
	w.write("p/s.jsonl", "{}\n")
	w.write("p/s/subagents/agent-1.jsonl", "{}\n")
	for _, rel := range []string{"p/s.jsonl", "p/s/subagents/agent-1.jsonl", "p/s/subagents", "p/s"} {
		w.age(rel, 24*time.Hour)
	}
	w.start()
	w.arrived("p/s/subagents/agent-1.jsonl", "s/agent-1", 1)
	w.add("p/s.jsonl", "{}\n")
	w.main("p/s.jsonl")
	w.until("its folders are watched", func() bool {
		w.tail.mu.Lock()
		defer w.tail.mu.Unlock()
		d := w.tail.table.folders[w.path("p/s/subagents")]
		return d != nil && !d.listSoon && w.tail.now()-d.touched < time.Minute
	})
	w.sync() // the main loop is through with them
	w.add("p/s/subagents/agent-2.jsonl", "{}\n")
	w.arrived("p/s/subagents/agent-2.jsonl", "s/agent-2", 1)
}

func TestPollingAlone(t *testing.T) {
	w := newWorld(t)
	w.cfg.Watch, w.cfg.ScanAll, w.cfg.ScanActive = "poll", time.Hour, time.Hour
	w.write("p/old.jsonl", "{}\n")
	w.age("p/old.jsonl", time.Hour)
	w.startWith("p/old.jsonl")
	w.write("p/a.jsonl", "{}\n")
	w.main("p/a.jsonl")
	w.write("new/b.jsonl", "{}\n")
	w.write("new/b/subagents/agent-1.jsonl", "{}\n")
	w.arrived("new/b/subagents/agent-1.jsonl", "b/agent-1", 1)
	w.add("p/old.jsonl", "{}\n")
	w.main("p/old.jsonl")
	w.rename("new/b.jsonl", "p/b.jsonl")
	w.main("p/b.jsonl")
	s := w.tail.Stats()
	kit.Check(t, s.Watch == "poll" && s.WatchReason != "", "watch %q, %q", s.Watch, s.WatchReason)
}

func TestOverflow(t *testing.T) {
	w := newWorld(t)
	w.slow()
	var events atomic.Int64
	w.prep = func(t *Tailer) {
		t.faults.event = func(string) error {
			if n := events.Add(1); n > 50 && n%100 != 0 {
				return fsnotify.ErrEventOverflow // and the event is lost
			}
			return nil
		}
	}
	written := make(chan struct{})
	w.mem.note = func([]Chunk) { <-written } // a slow writer would be given a call for each file
	w.start()
	w.sync()
	const n = 2000
	for i := range n {
		w.write(fmt.Sprintf("p%d/s%d.jsonl", i%7, i), lines("n", 2, 200))
	}
	close(written)
	w.until("all files arrive", func() bool { return w.tail.Stats().Tracked == n && w.tail.Stats().UnreadFiles == 0 })
	for i := range n {
		w.main(fmt.Sprintf("p%d/s%d.jsonl", i%7, i))
	}
	w.mem.do(func() { kit.Check(t, w.mem.calls <= n/2, "%d calls for %d files", w.mem.calls, n) })
}

func TestFoldersThatCannotBeListed(t *testing.T) {
	for name, broken := range map[string]string{"project": "p", "root": ""} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var failing atomic.Bool
			w.prep = func(t *Tailer) {
				t.faults.list = func(path string) error {
					return kit.If[error](failing.Load() && path == w.path(broken), &os.PathError{Op: "open", Path: path, Err: syscall.EMFILE}, nil)
				}
			}
			w.follow("p/a.jsonl", lines("a", 3, 100))
			failing.Store(true)
			w.until("it is said", func() bool { return len(w.tail.Unlisted()) == 1 })
			// One of the same name elsewhere is not the missing file moved: nothing is missing.
			w.write("q/a.jsonl", lines("a", 4, 100))
			w.sync()
			s := w.tail.Stats()
			kit.Check(t, s.Vanished == 0 && w.tail.Unlisted()[w.path(broken)] != nil, "stats %+v", s)
			failing.Store(false)
			w.add("p/a.jsonl", lines("b", 3, 100))
			w.arrived("q/a.jsonl", "a", 2)
			k := w.main("p/a.jsonl")
			kit.Check(t, k.sent == int64(len(k.content)), "sent %d", k.sent)
			w.until("it is listed again", func() bool { return len(w.tail.Unlisted()) == 0 })
		})
	}
}

func TestRootGoesAndComesBack(t *testing.T) {
	w := newWorld(t)
	w.follow("p/a.jsonl", lines("a", 3, 100))
	w.must(os.Rename(w.root, w.root+"-unmounted"))
	w.until("it is said", func() bool { return len(w.tail.Unlisted()) == 1 })
	w.sync()
	s := w.tail.Stats()
	kit.Check(t, s.Vanished == 0 && s.Tracked == 1, "stats %+v", s)
	w.must(os.Rename(w.root+"-unmounted", w.root))
	w.add("p/a.jsonl", lines("b", 3, 100))
	k := w.main("p/a.jsonl")
	kit.Check(t, k.sent == int64(len(k.content)), "sent %d", k.sent)
}

func TestOutOfWatches(t *testing.T) {
	full := syscall.ENOSPC
	if runtime.GOOS == "windows" {
		full = syscall.Errno(1450) // ERROR_NO_SYSTEM_RESOURCES
	}
	for _, at := range []string{"", "p"} {
		t.Run("at "+at, func(t *testing.T) {
			w := newWorld(t)
			var failing atomic.Bool
			failing.Store(true)
			path := at
			if at != "" {
				path = w.path(at)
			}
			w.prep = func(t *Tailer) {
				t.faults.watch = func(p string) error { return kit.If[error](failing.Load() && p == path, full, nil) }
			}
			w.follow("p/a.jsonl", "{}\n")
			w.until("it polls, and says why", func() bool {
				s := w.tail.Stats()
				return s.Watch == "poll" && strings.Contains(s.WatchReason, full.Error())
			})
			w.add("p/a.jsonl", "{}\n")
			w.main("p/a.jsonl")
			failing.Store(false)
			w.until("events come again", func() bool { return w.tail.Stats().Watch == "events" })
			w.add("p/a.jsonl", "{}\n")
			w.main("p/a.jsonl")
		})
	}
}

func TestFilesThatCannotBeOpened(t *testing.T) {
	w := newWorld(t)
	var failing atomic.Bool
	failing.Store(true)
	w.prep = func(t *Tailer) {
		t.faults.open = func(path string) error {
			return kit.If[error](failing.Load() && strings.HasSuffix(path, "a.jsonl"), &os.PathError{Op: "open", Path: path, Err: syscall.EACCES}, nil)
		}
	}
	w.write("p/a.jsonl", "{}\n")
	w.follow("p/b.jsonl", "{}\n")
	err := w.tail.Sync(t.Context())
	e, ok := errors.AsType[*WaitingError](err)
	kit.Check(t, ok && e.Unread == 1 && e.Later == 1 && e.NoSpace == 0, "sync: %v", err)
	failing.Store(false)
	w.main("p/a.jsonl")
	w.sync()
}

func TestWallClockJump(t *testing.T) {
	w := newWorld(t)
	w.slow()
	w.cfg.ScanActive = 10 * time.Millisecond
	var ahead atomic.Int64
	w.prep = func(t *Tailer) {
		t.wall = func() time.Time { return time.Now().Round(0).Add(time.Duration(ahead.Load())) }
		t.faults.event = func(string) error { return nil }
	}
	w.cfg.Watch = "poll"
	w.write("p/s.jsonl", "{}\n")
	w.write("p/s/subagents/agent-1.jsonl", "{}\n")
	for _, rel := range []string{"p/s.jsonl", "p/s/subagents/agent-1.jsonl", "p/s/subagents", "p/s", "p"} {
		w.age(rel, 24*time.Hour)
	}
	w.start()
	w.arrived("p/s/subagents/agent-1.jsonl", "s/agent-1", 1)
	w.sync()
	w.add("p/s/subagents/agent-1.jsonl", "{}\n") // nothing looks there for an hour
	ahead.Store(int64(8 * time.Hour))            // but the machine has slept
	w.arrived("p/s/subagents/agent-1.jsonl", "s/agent-1", 1)
}

// TestRereadWhileOneIsDelivered: what is asked for while the same is being done is done once more. The owner may have
// changed its mind about the lines that are under way.
func TestRereadWhileOneIsDelivered(t *testing.T) {
	w := newWorld(t)
	var once sync.Once
	w.mem.note = func(chunks []Chunk) {
		if c := &chunks[0]; c.From.Generation == 1 {
			once.Do(func() { w.tail.Reread(c.File.ID) })
		}
	}
	w.write("p/a.jsonl", lines("a", 300, 1000))
	id := w.startWith("p/a.jsonl").File.ID
	w.tail.Reread(id)
	w.until("it comes a second time", func() bool { return w.mem.named("a")[0].Cursor.Generation == 2 })
	w.sync()
	k := w.main("p/a.jsonl")
	w.tail.mu.Lock()
	defer w.tail.mu.Unlock()
	left := w.tail.table.byID[id].wishes
	kit.Check(t, k.Cursor.Generation == 2 && !left.open(), "%+v, %+v", k.Cursor, left)
}

// TestWishesSurviveAnInspection that came to nothing, or that began before they were asked for.
func TestWishesSurviveAnInspection(t *testing.T) {
	for name, c := range map[string]struct {
		l   inspection
		err error
		r   Result
	}{
		"deferred":           {l: inspection{deferred: true}},
		"another file there": {l: inspection{replaced: true}},
		"unreadable":         {err: fs.ErrPermission},
		"gone":               {err: fs.ErrNotExist},
		"not delivered":      {r: Result{Err: errNotDelivered}},
		"not taken":          {r: Result{Err: ErrLater}},
		"stale":              {r: Result{Err: ErrStale}},
		"done":               {},
	} {
		for _, before := range []bool{true, false} {
			tl := New(Config{}, nil, nil)
			f := newFile(&Tracked{File: File{ID: 1, Path: "/r/p/s.jsonl"}}, Stat{})
			ask := func() { f.wishes.deep.ask(); f.wishes.reread.ask(); f.wishes.reload.ask(); f.wishes.look.ask() }
			if before {
				ask()
			}
			c.l.f, c.l.t, c.l.wishes = f, tl, f.wishes
			if !before {
				ask()
			}
			tl.record(&c.l, c.err, c.r)
			granted := before && name == "done" // the cursor is loaded elsewhere
			w := f.wishes
			kit.Check(t, w.deep.open() != granted && w.reread.open() != granted && w.look.open() != granted && w.reload.open(), "%s, asked before %t: %+v", name, before, w)
		}
	}
}

// TestWakeDuringDelivery: a file that is not taken now, by what the owner knew before it called Wake, is offered again.
func TestWakeDuringDelivery(t *testing.T) {
	w := newWorld(t)
	var once sync.Once
	refused := false
	w.mem.answer = func(*Chunk) Result {
		if !refused {
			refused = true
			return Result{Err: ErrLater}
		}
		return Result{}
	}
	w.mem.note = func([]Chunk) {
		once.Do(func() {
			w.tail.Wake()
			w.until("the call is heeded", func() bool {
				w.tail.mu.Lock()
				defer w.tail.mu.Unlock()
				return w.tail.queue.wakes > 0
			})
		})
	}
	w.follow("p/a.jsonl", lines("a", 3, 100))
}

// TestWakeWhileAskedForRoom: no file waits for space by an answer from before a call of Wake.
func TestWakeWhileAskedForRoom(t *testing.T) {
	w := newWorld(t)
	var once sync.Once
	w.prep = func(tl *Tailer) {
		tl.sink = roomOf{w.mem, func() (room bool) {
			room = true
			once.Do(func() {
				room = false
				w.tail.Wake()
				w.until("the call is heeded", func() bool {
					tl.mu.Lock()
					defer tl.mu.Unlock()
					return tl.queue.wakes > 0
				})
			})
			tl.mu.Lock()
			defer tl.mu.Unlock()
			kit.Check(t, tl.queue.noSpace == [2]bool{} && tl.queue.noSpaceAt == 0, "files wait for room")
			return room
		}}
	}
	w.follow("p/a.jsonl", lines("a", 3, 100))
	err := w.tail.Sync(t.Context())
	kit.Check(t, err == nil || errors.Is(err, ErrStopped), "%v", err)
}

// roomOf is a memory whose space is asked of another caller.
type roomOf struct {
	*memory
	room func() bool
}

func (r roomOf) HasSpace(bool) bool { return r.room() }
