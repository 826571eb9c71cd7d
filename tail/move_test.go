package tail

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

func TestMoveToAnotherFolder(t *testing.T) {
	for _, while := range []string{"running", "stopped"} {
		t.Run(while, func(t *testing.T) {
			w := newWorld(t)
			body := lines("a", 300, 1000)
			w.write("p/a.jsonl", body+"half a li")
			w.write("p/b.jsonl", "{}\n")
			w.startWith("p/a.jsonl")
			if while == "stopped" {
				w.stop()
			}
			w.rename("p/a.jsonl", "new/a.jsonl")
			w.add("new/a.jsonl", "ne\n"+lines("b", 3, 100))
			if while == "stopped" {
				w.start()
			}
			k := w.main("new/a.jsonl")
			w.sync()
			if len(w.mem.named("a")) != 1 || k.Cursor.Generation != 0 || k.sent != int64(len(w.read("new/a.jsonl"))) {
				t.Errorf("after the move: sent %d of %d, %+v", k.sent, len(w.read("new/a.jsonl")), k.Cursor)
			}
			s := w.tail.Stats()
			kit.Check(t, s.Tracked == 2 && s.Vanished == 0, "stats %+v", s)
		})
	}
}

func TestMoveOfASession(t *testing.T) {
	w := newWorld(t)
	rel := []string{"s1.jsonl", "s1/subagents/agent-1.jsonl", "s1/subagents/workflows/r/agent-2.jsonl"}
	names := []string{"s1", "s1/agent-1", "s1/agent-2"}
	for _, r := range rel {
		w.write("p/"+r, lines(r, 10, 200))
	}
	w.start()
	for i, r := range rel {
		w.arrived("p/"+r, names[i], 1)
	}
	w.must(os.Mkdir(w.path("q"), 0o700))
	w.must(os.Rename(w.path("p/s1"), w.path("q/s1")))
	w.must(os.Rename(w.path("p/s1.jsonl"), w.path("q/s1.jsonl")))
	for i, r := range rel {
		w.add("q/"+r, lines("more", 2, 200))
		k := w.arrived("q/"+r, names[i], 1)
		kit.Check(t, k.sent == int64(len(w.read("q/"+r))) && k.Cursor.Generation == 0, "%s: sent %d, %+v", r, k.sent, k.Cursor)
	}
	w.must(os.Rename(w.path("q"), w.path("r"))) // and now the whole project
	for i, r := range rel {
		w.add("r/"+r, lines("again", 2, 200))
		kit.Equal(t, r+": sent", w.arrived("r/"+r, names[i], 1).sent, int64(len(w.read("r/"+r))))
	}
	w.sync()
	s := w.tail.Stats()
	kit.Check(t, s.Tracked == 3 && s.Vanished == 0 && s.Mains == 1, "stats %+v", s)
}

func TestStubAtTheOldPath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("listings have no inode on Windows: the moved file is sent as a new one, and the old path counts as rewound")
	}
	for _, while := range []string{"running", "stopped"} {
		t.Run(while, func(t *testing.T) {
			w := newWorld(t)
			w.follow("p/a.jsonl", lines("a", 100, 500))
			if while == "stopped" {
				w.stop()
			}
			w.rename("p/a.jsonl", "z/a.jsonl")
			w.write("p/a.jsonl", lines("stub", 2, 80))
			if while == "stopped" {
				w.start()
			}
			w.add("z/a.jsonl", lines("b", 2, 500))
			k := w.arrived("z/a.jsonl", "a", 1)
			stub := w.arrived("p/a.jsonl", "a", 2)
			w.sync()
			kit.Check(t, k.Cursor.Generation == 0 && k.sent == int64(len(k.content)) && stub.Cursor.Generation == 0,
				"moved %+v, sent %d; stub %+v", k.Cursor, k.sent, stub.Cursor)
		})
	}
}

func TestTwoFilesOfOneName(t *testing.T) {
	w := newWorld(t)
	w.write("a/x.jsonl", lines("small", 2, 100))
	w.write("b/x.jsonl", lines("large", 9, 100))
	w.write("c/agent-1.jsonl", lines("one", 3, 100))
	w.write("d/agent-1.jsonl", lines("two", 2, 100))
	w.start()
	w.arrived("b/x.jsonl", "x", 1)
	w.arrived("a/x.jsonl", "x", 2)
	w.arrived("c/agent-1.jsonl", "agent-1", 1)
	w.arrived("d/agent-1.jsonl", "agent-1", 2)
	w.add("a/x.jsonl", lines("small2", 30, 100)) // larger now, but numbers stay
	w.arrived("a/x.jsonl", "x", 2)
	w.restart()
	w.add("b/x.jsonl", lines("large2", 1, 100))
	w.arrived("b/x.jsonl", "x", 1)
	k := w.arrived("a/x.jsonl", "x", 2)
	kit.Check(t, k.sent == int64(len(k.content)), "sent %d", k.sent)
}

func TestHardLinkIsAFileOfItsOwn(t *testing.T) {
	w := newWorld(t)
	w.follow("p/a.jsonl", lines("a", 3, 100))
	w.mkdir("q")
	w.must(os.Link(w.path("p/a.jsonl"), w.path("q/a.jsonl")))
	w.arrived("q/a.jsonl", "a", 2)
	w.add("q/a.jsonl", lines("b", 3, 100))
	w.arrived("q/a.jsonl", "a", 2)
	w.main("p/a.jsonl")
}

func TestForkIsAFileOfItsOwn(t *testing.T) {
	w := newWorld(t)
	w.follow("p/a.jsonl", lines("a", 30, 1000))
	w.write("p/b.jsonl", lines("a", 30, 1000)+lines("b", 20, 1000))
	k := w.main("p/b.jsonl")
	kit.Check(t, k.sent == int64(len(k.content)), "sent %d of %d", k.sent, len(k.content))
}

func TestCopiedElsewhereAndDeleted(t *testing.T) {
	w := newWorld(t)
	body := lines("a", 300, 1000)
	w.follow("p/a.jsonl", body)
	w.must(os.Remove(w.path("p/a.jsonl")))
	w.until("it is missed", func() bool { return w.tail.Stats().Vanished == 1 })
	w.must(os.MkdirAll(w.path("q"), 0o700))
	w.write("q/a.jsonl", body[:200_000]+lines("c", 2, 1000)) // mostly the same, at a new place and inode
	k := w.main("q/a.jsonl")
	kit.Check(t, k.Cursor.Generation != 0 && len(w.mem.named("a")) == 1, "%+v", k.Tracked)
	s := w.tail.Stats()
	kit.Check(t, s.Tracked == 1 && s.Vanished == 0, "stats %+v", s)
}

func TestDeletedAndBack(t *testing.T) {
	w := newWorld(t)
	body := lines("a", 100, 1000)
	w.write("p/a.jsonl", body)
	w.write("p/b.jsonl", body)
	w.startWith("p/a.jsonl")
	w.main("p/b.jsonl")
	w.must(os.Remove(w.path("p/a.jsonl")))
	w.until("its vanishing is stored", func() bool { return w.mem.named("a")[0].Gone != 0 })
	w.restart()
	w.sync()
	s := w.tail.Stats()
	kit.Check(t, s.Tracked == 1 && s.Vanished == 1, "stats %+v", s)
	w.replace("p/a.jsonl", body) // restored from a backup, and never seen half written
	w.until("its return is stored", func() bool { return w.mem.named("a")[0].Gone == 0 })
	w.sync()
	k := w.main("p/a.jsonl")
	kit.Check(t, k.Cursor.Generation == 0 && k.sent == int64(len(body)), "sent %d, %+v", k.sent, k.Tracked)
}

func TestInodeReusedByAnotherSession(t *testing.T) {
	w := newWorld(t)
	w.follow("p/a.jsonl", lines("a", 30, 100))
	w.stop()
	w.rename("p/a.jsonl", "p/b.jsonl") // the same inode under another name
	k := w.follow("p/b.jsonl", lines("b", 40, 100))
	w.sync()
	kit.Check(t, k.Cursor.Generation == 0 && k.sent == int64(len(k.content)) && w.mem.named("a")[0].Gone != 0,
		"b: %+v; a: gone %d", k.Tracked, w.mem.named("a")[0].Gone)
}

func TestRootsChanged(t *testing.T) {
	w := newWorld(t)
	w.follow("p/a.jsonl", lines("a", 30, 100))
	w.stop()
	w.must(os.Symlink(w.root, w.root+"-too"))
	w.cfg.Roots = []Root{{Dir: w.root + "-too"}}
	w.root += "-too"
	w.start()
	w.add("p/a.jsonl", lines("b", 3, 100))
	k := w.main("p/a.jsonl")
	kit.Check(t, k.sent == int64(len(k.content)) && k.File.Root == w.root, "sent %d, %+v", k.sent, k.File)
}

func TestForgottenInTheEnd(t *testing.T) {
	w := newWorld(t)
	w.write("p/a.jsonl", "{}\n")
	w.write("p/b.jsonl", "{}\n")
	w.start()
	old, young := w.main("p/a.jsonl"), w.main("p/b.jsonl")
	w.stop()
	w.must(os.Remove(w.path("p/a.jsonl")))
	w.must(os.Remove(w.path("p/b.jsonl")))
	w.mem.do(func() {
		w.mem.files[old.File.ID].Gone, w.mem.files[old.File.ID].Missed = 1, goneFor-time.Nanosecond
		w.mem.files[young.File.ID].Gone, w.mem.files[young.File.ID].Missed = 1, 5
	})
	w.prep = func(tl *Tailer) { // the clock is set forward
		tl.wall = func() time.Time { return time.Now().Round(0).AddDate(50, 0, 0) }
	}
	w.start()
	w.until("the one missed long enough is forgotten", func() bool { return len(w.mem.named("a")) == 0 })
	w.stop()
	k := w.mem.named("b")
	kit.Check(t, len(k) == 1 && k[0].Missed > 5, "missed for too short a time, but %+v", k)
}

// TestNotForgottenWhileItsLinesWait: what the cursors' keeper cannot forget yet stays the same file when it comes back.
func TestNotForgottenWhileItsLinesWait(t *testing.T) {
	w := newWorld(t)
	old := w.follow("p/a.jsonl", "{}\n")
	w.stop()
	w.must(os.Remove(w.path("p/a.jsonl")))
	asked := make(chan struct{}, 1)
	w.mem.do(func() {
		w.mem.files[old.File.ID].Gone, w.mem.files[old.File.ID].Missed = 1, goneFor
		w.mem.keeps = func(FileID) bool {
			select {
			case asked <- struct{}{}:
			default:
			}
			return true
		}
	})
	w.start()
	<-asked
	<-asked // it is tried again
	w.write("p/a.jsonl", "{}\n{}\n")
	k := w.main("p/a.jsonl")
	kit.Check(t, k.File.ID == old.File.ID && k.sent == int64(len(k.content)), "%+v, %d bytes sent", k.File, k.sent)
}

// TestStubSeenFirst lets the stub be seen before the moved file is: until everything was listed, it must not be taken
// for the file cut short.
func TestStubSeenFirst(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("listings have no inode on Windows: the moved file is sent as a new one, and the old path counts as rewound")
	}
	for _, by := range []string{"main loop", "worker"} {
		t.Run(by, func(t *testing.T) {
			w := newWorld(t)
			k := w.follow("p/a.jsonl", lines("a", 100, 500))
			tl := w.still()
			w.rename("p/a.jsonl", "z/a.jsonl")
			w.write("p/a.jsonl", lines("stub", 2, 80))
			f := tl.table.byID[k.File.ID]
			if by == "worker" {
				tl.fileChanged(f)
				tl.runJob(t.Context(), tl.pick())
				kit.Equal(t, fmt.Sprintf("hints %v", tl.requests.hints), len(tl.requests.hints), 1)
			} else {
				tl.scanHints(t.Context(), map[string]struct{}{w.path("p/a.jsonl"): {}})
				kit.Check(t, tl.requests.full, "no listing of everything was asked for")
			}
			kit.Check(t, f.pathTaken && f.state == idle && f.view().Cursor == k.Cursor,
				"the stub is read: held %v, state %d, %+v", f.pathTaken, f.state, f.view().Cursor)
			tl.scanAll(t.Context(), "test")
			kit.Check(t, !f.pathTaken && f.view().File.Path == w.path("z/a.jsonl") && len(tl.table.byID) == 2,
				"after a listing: held %v, %+v, %d files", f.pathTaken, f.view().File, len(tl.table.byID))
		})
	}
}

func TestRootGoneIsNoMove(t *testing.T) {
	w := newWorld(t)
	body := lines("a", 30, 100)
	w.write("p/a.jsonl", body)
	w.cfg.Roots = append(w.cfg.Roots, Root{Dir: w.root + "2"})
	w.startWith("p/a.jsonl")
	w.must(os.Rename(w.root, w.root+"-unmounted"))
	w.until("it is said", func() bool { return len(w.tail.Unlisted()) == 2 })
	w.write("../projects2/q/a.jsonl", body)
	w.arrived("../projects2/q/a.jsonl", "a", 2)
	w.must(os.Rename(w.root+"-unmounted", w.root))
	w.add("p/a.jsonl", "{}\n")
	k := w.main("p/a.jsonl")
	kit.Check(t, k.sent == int64(len(k.content)), "sent %d", k.sent)
}

// TestMovedWhileDelivered: a file that moves while a chunk of it is made durable is stored with its new path in the end.
func TestMovedWhileDelivered(t *testing.T) {
	for name, first := range map[string]bool{"its first": true, "a later one": false} {
		t.Run(name, func(t *testing.T) { movedWhileDelivered(t, first) })
	}
}

func movedWhileDelivered(t *testing.T, first bool) {
	w := newWorld(t)
	var armed atomic.Bool
	armed.Store(first)
	w.mem.note = func([]Chunk) {
		if !armed.Swap(false) {
			return
		}
		w.rename("p/a.jsonl", "q/a.jsonl")
		w.until("the move is seen", func() bool {
			if stored := w.mem.named("a"); !first {
				return stored[0].File.Path == w.path("q/a.jsonl")
			}
			w.tail.mu.Lock()
			defer w.tail.mu.Unlock()
			for _, f := range w.tail.table.byID {
				return f.view().File.Path == w.path("q/a.jsonl") && len(w.tail.table.unsaved) == 0
			}
			return false
		})
	}
	w.write("p/a.jsonl", lines("a", 3, 100))
	w.start()
	if !first {
		w.main("p/a.jsonl")
		armed.Store(true)
		w.add("p/a.jsonl", lines("b", 3, 100))
	}
	w.until("it is stored where it is", func() bool {
		all := w.mem.named("a")
		return len(all) == 1 && all[0].File.Path == w.path("q/a.jsonl")
	})
	w.main("q/a.jsonl")
}

// A session with a file in each of two folders is one, until both are gone.
func TestSessionInTwoFolders(t *testing.T) {
	w := newWorld(t)
	w.write("p/a.jsonl", lines("a", 5, 100))
	w.write("q/a.jsonl", lines("b", 2, 100))
	w.startWith("p/a.jsonl")
	w.until("one session in two files", func() bool {
		s := w.tail.Stats()
		return s.Tracked == 2 && s.Mains == 1
	})
	w.must(os.Remove(w.path("p/a.jsonl")))
	w.until("its other file stays", func() bool {
		s := w.tail.Stats()
		return s.Tracked == 1 && s.Mains == 1
	})
}
