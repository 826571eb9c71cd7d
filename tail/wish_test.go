package tail

import (
	"errors"
	"io/fs"
	"sync"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

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
