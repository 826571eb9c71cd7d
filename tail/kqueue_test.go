package tail

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/ccship/ccship/e2e/kit"
)

// happening is a change on disk, and the events that come of it on macOS, in their order. A kqueue reports of a folder
// only that it was written to: fsnotify lists it then and makes a Create of each new name. Of files it tells a write,
// however many there were since the last look; a removal, without the write before it; and a cut as a change of
// attributes. A name that is taken over is a Remove of the old file, then a Create.
type happening struct {
	name string
	do   func(w *world)
	told []fsnotify.Event // names relative to the root
}

func (h *happening) tell(w *world) {
	for _, e := range h.told {
		e.Name = w.path(e.Name)
		w.tail.event(e)
	}
}

func happenings() []happening {
	const file = "p/s.jsonl"
	one := func(op fsnotify.Op) []fsnotify.Event { return []fsnotify.Event{{Name: file, Op: op}} }
	return []happening{
		{"one write", func(w *world) { w.add(file, lines("b", 1, 100)) }, one(fsnotify.Write)},
		{"many writes told once", func(w *world) {
			for range 300 {
				w.add(file, lines("b", 1, 100))
			}
		}, one(fsnotify.Write)},
		{"a write and a change of attributes told together", func(w *world) { w.add(file, lines("b", 1, 100)) },
			one(fsnotify.Write | fsnotify.Chmod)},
		{"a cut", func(w *world) { w.must(os.Truncate(w.path(file), 300)) }, one(fsnotify.Chmod)},
		{"a cut and lines behind it", func(w *world) {
			w.must(os.Truncate(w.path(file), 300))
			w.add(file, lines("c", 2, 150))
		}, one(fsnotify.Chmod | fsnotify.Write)},
		{"another file renamed over it", func(w *world) { w.replace(file, lines("c", 7, 100)) }, []fsnotify.Event{
			{Name: file + ".compact.tmp.0a1b2c3d", Op: fsnotify.Create},
			{Name: file + ".compact.tmp.0a1b2c3d", Op: fsnotify.Rename},
			{Name: file, Op: fsnotify.Remove}, {Name: file, Op: fsnotify.Create},
		}},
		{"removed and made again", func(w *world) {
			w.must(os.Remove(w.path(file)))
			w.write(file, lines("d", 5, 100))
		}, []fsnotify.Event{{Name: file, Op: fsnotify.Remove}, {Name: file, Op: fsnotify.Create}}},
		{"removed and made again, the removal told last", func(w *world) {
			w.must(os.Remove(w.path(file)))
			w.write(file, lines("d", 5, 100))
		}, []fsnotify.Event{{Name: file, Op: fsnotify.Create}, {Name: file, Op: fsnotify.Remove}}},
		{"moved away and back, with a line more", func(w *world) {
			w.rename(file, "p/away")
			w.rename("p/away", file)
			w.add(file, lines("e", 1, 100))
		}, []fsnotify.Event{{Name: file, Op: fsnotify.Rename}, {Name: file, Op: fsnotify.Create}}},
	}
}

// TestKqueueSequences: each sequence of events makes the tailer find what happened. Nothing else would: listings and
// polls are an hour away.
func TestKqueueSequences(t *testing.T) {
	for _, h := range happenings() {
		t.Run(h.name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Watch, w.cfg.ScanAll, w.cfg.ScanActive, w.cfg.PollInterval = "poll", time.Hour, time.Hour, time.Hour
			w.follow("p/s.jsonl", lines("a", 6, 100))
			h.do(w)
			h.tell(w)
			w.main("p/s.jsonl")
		})
	}
}

// TestKqueueNewNames: of a new folder only its name is reported, and what is in it may be older than its watch; of a
// new file nothing but its name, however much is written before it is watched itself.
func TestKqueueNewNames(t *testing.T) {
	w := newWorld(t)
	w.cfg.Watch, w.cfg.ScanAll, w.cfg.ScanActive, w.cfg.PollInterval = "poll", time.Hour, time.Hour, time.Hour
	w.follow("p/s.jsonl", lines("a", 2, 100))
	w.write("p/new.jsonl", lines("n", 50, 100))
	w.tail.event(fsnotify.Event{Name: w.path("p/new.jsonl"), Op: fsnotify.Create})
	w.main("p/new.jsonl")
	w.write("q/first.jsonl", lines("f", 3, 100))
	w.tail.event(fsnotify.Event{Name: w.path("q"), Op: fsnotify.Create})
	w.main("q/first.jsonl")
	w.write("p/s/subagents/agent-1.jsonl", lines("g", 3, 100))
	w.tail.event(fsnotify.Event{Name: w.path("p/s"), Op: fsnotify.Create})
	w.arrived("p/s/subagents/agent-1.jsonl", "s/agent-1", 1)
	w.must(os.RemoveAll(w.path("q")))
	w.write("q/second.jsonl", lines("h", 3, 100)) // the same name, another folder
	w.tail.event(fsnotify.Event{Name: w.path("q/first.jsonl"), Op: fsnotify.Remove})
	w.tail.event(fsnotify.Event{Name: w.path("q"), Op: fsnotify.Remove})
	w.tail.event(fsnotify.Event{Name: w.path("q"), Op: fsnotify.Create})
	w.main("q/second.jsonl")
}

// TestKqueueDescriptors: a kqueue needs a descriptor for each file in a watched folder. When there are none left,
// adding a folder fails in the middle of its files, with an error that names the file. Everything is polled then,
// status says why, and when there are descriptors again, so are the events.
func TestKqueueDescriptors(t *testing.T) {
	none := syscall.EMFILE
	if runtime.GOOS == "windows" {
		none = syscall.Errno(4) // ERROR_TOO_MANY_OPEN_FILES
	}
	w := newWorld(t)
	var few atomic.Bool
	few.Store(true)
	w.prep = func(t *Tailer) {
		t.faults.watch = func(path string) error {
			return kit.If[error](few.Load() && path != "" && path != w.root, fmt.Errorf("%q: %w", path+"/s1.jsonl", none), nil)
		}
	}
	for i := range 5 {
		w.write(fmt.Sprintf("p%d/s%d.jsonl", i, i), lines("a", 3, 100))
	}
	w.start()
	w.until("it polls", func() bool { s := w.tail.Stats(); return s.Watch == "poll" && s.WatchReason != "" })
	for i := range 5 {
		w.add(fmt.Sprintf("p%d/s%d.jsonl", i, i), lines("b", 3, 100))
		w.main(fmt.Sprintf("p%d/s%d.jsonl", i, i))
	}
	few.Store(false)
	w.until("there are events again", func() bool { return w.tail.Stats().Watch == "events" })
	w.add("p3/s3.jsonl", lines("c", 1, 100))
	w.main("p3/s3.jsonl")
}
