package tail

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestRestKeepsAll: whatever is known of a file is the same after it has rested.
func TestRestKeepsAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 9))
	number := func() int64 {
		return []int64{0, 1, -1, rng.Int64N(1000), rng.Int64(), -rng.Int64(), math.MaxInt64, math.MinInt64}[rng.IntN(8)]
	}
	stat := func() Stat {
		return Stat{Device: uint64(number()), Inode: uint64(number()), Size: number(), ModTime: number(), ChangeTime: number()}
	}
	d := &folder{path: "/r/p", root: &rootState{Root: Root{Dir: "/r"}}, level: projectLevel}
	for range 20_000 {
		seen := stat()
		k := facts{seen: seen, changed: longAgo}
		k.File = File{ID: FileID(rng.Uint64()), Kind: Main, Path: "/r/p/s.jsonl", Root: "/r", Name: "s", Copy: 1 + rng.IntN(3)*rng.IntN(2),
			Stat: []Stat{{}, seen, stat()}[rng.IntN(3)]}
		k.Verified = []Stat{{}, seen, stat()}[rng.IntN(3)]
		if rng.IntN(4) > 0 {
			k.Cursor = Cursor{Offset: number(), Line: number(), Generation: rng.Uint32(), Anchor: uint64(number()), Mark: number(),
				Segment: uint64(number())}
		}
		f := &file{id: k.File.ID, base: "s.jsonl", folder: d, awake: &k}
		tl := &Tailer{started: time.Now()}
		tl.rest(f)
		kit.Require(t, f.awake == nil, "does not rest: %+v", k)
		got := f.view()
		kit.Require(t, got == k, "rested:\n%+v\nwas:\n%+v", got, k)
		kit.Require(t, f.glance().seen == k.seen && *f.facts() == k && f.packed == "", "woken, it is another file")
	}
}

// TestRests: a history rests once it is read; what is written wakes, and rests again once it is quiet. A file
// that is out of the ordinary stays awake.
func TestRests(t *testing.T) {
	w := newWorld(t)
	w.old()
	w.write("p/half.jsonl", `{"half`)
	w.age("p/half.jsonl", 24*time.Hour)
	w.age("p", 24*time.Hour)
	tl := w.tail
	w.until("all is read, and rests as far as it may", func() bool {
		tl.mu.Lock()
		defer tl.mu.Unlock()
		rested, awake := 0, ""
		for _, f := range tl.table.byID {
			if f.awake == nil {
				rested++
			} else {
				awake += f.base
			}
		}
		return rested == 2 && awake == "half.jsonl"
	})
	kit.Locked(&tl.mu, func() { tl.restAt = time.Hour })
	w.add("p/s.jsonl", lines("b", 1, 100))
	w.main("p/s.jsonl")
	tl.mu.Lock()
	f := tl.table.folders[w.path("p")].files["s.jsonl"]
	kit.Check(t, f.awake != nil, "it rests right after a change")
	tl.restAt = 0
	first, _ := tl.drowsy.Peek()
	tl.drowsy.Pop()
	tl.drowsy.Push(doze{first.f, 0}) // as if the time had come
	tl.mu.Unlock()
	w.until("it rests once it is old enough", func() bool {
		tl.mu.Lock()
		defer tl.mu.Unlock()
		return f.awake == nil
	})
}

// TestCopiedHistoryRests: files that were just put here, with the times of where they came from, rest once they are
// read. Awake, each of them takes twice the memory for two minutes, in which a fast import has a hundred thousand.
func TestCopiedHistoryRests(t *testing.T) {
	w := newWorld(t)
	w.prep = func(tl *Tailer) { tl.restAt = time.Hour }
	w.old() // their change time is now
	w.until("they rest", func() bool {
		w.tail.mu.Lock()
		defer w.tail.mu.Unlock()
		for _, f := range w.tail.table.byID {
			if f.awake != nil {
				return false
			}
		}
		return len(w.tail.table.byID) == 2
	})
	w.add("p/s.jsonl", lines("b", 1, 100))
	w.main("p/s.jsonl")
	w.tail.mu.Lock()
	defer w.tail.mu.Unlock()
	kit.Check(t, w.tail.table.folders[w.path("p")].files["s.jsonl"].awake != nil, "what was written rests right after it")
}

// The main loop comes round by itself while nothing happens, and not any more once it has ended.
func TestSinceTurn(t *testing.T) {
	w := newWorld(t)
	w.start()
	for range 3 {
		turn := w.tail.lastHeartbeat.Load()
		w.until("the loop comes round", func() bool { return w.tail.lastHeartbeat.Load() > turn })
	}
	since := w.tail.SinceHeartbeat()
	kit.Check(t, since >= 0 && since <= patience, "since %s", since)
	w.stop()
	turn := w.tail.lastHeartbeat.Load()
	w.until("time passes", func() bool { return w.tail.SinceHeartbeat() > 100*time.Millisecond })
	kit.Equal(t, "an ended loop came round", w.tail.lastHeartbeat.Load(), turn)
}

func TestLongLines(t *testing.T) {
	w := newWorld(t)
	w.write("p/a.jsonl", lines("a", 2, 100)+lines("20 MB", 1, 20<<20)+lines("b", 2, 100)+lines("8 MB", 1, 8<<20)+lines("c", 1, 10))
	w.write("p/b.jsonl", lines("only", 1, 3<<20))
	k := w.startWith("p/a.jsonl")
	kit.Check(t, k.Cursor.Line == 7 && k.sent == int64(len(k.content)), "%+v", k.Cursor)
	w.main("p/b.jsonl")
}

func TestLongLineInPieces(t *testing.T) {
	w := newWorld(t)
	w.follow("p/a.jsonl", "{}\n")
	line := lines("long", 1, 6<<20)
	const piece = 64 << 10
	for at := 0; at < len(line); at += piece {
		w.add("p/a.jsonl", line[at:min(at+piece, len(line))])
		if at%(16*piece) == 0 {
			w.sync()
		}
		w.tail.mu.Lock()
		for _, f := range w.tail.table.byID {
			if f.view().long != nil && f.view().long.scanned < int64(at-32*piece) {
				t.Errorf("at %d only %d is remembered as searched", at, f.view().long.scanned)
			}
		}
		w.tail.mu.Unlock()
	}
	k := w.main("p/a.jsonl")
	kit.Check(t, k.sent == int64(len(k.content)) && k.chunks == 2, "sent %d bytes in %d chunks", k.sent, k.chunks)
}

func TestLongLineChangesBeforeItsEnd(t *testing.T) {
	for name, limit := range map[string]int64{"within the cap": 0, "beyond the cap": 100 << 10} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.Quiet, w.cfg.Cap = time.Hour, limit
			w.write("p/a.jsonl", "{}\n"+strings.Repeat("x", 300<<10))
			w.start()
			w.sync()
			w.add("p/a.jsonl", "x") // looked at with nothing before it, and remembered
			w.sync()
			f := kit.Try(os.OpenFile(w.path("p/a.jsonl"), os.O_WRONLY, 0)).Must(w.t)
			_ = kit.Try(f.WriteString("{}\n" + strings.Repeat("y\n", 150<<10) + strings.Repeat("z", 50<<10) + "\n")).Must(w.t)
			w.must(f.Close())
			k := w.main("p/a.jsonl")
			kit.Check(t, len(k.oversize) == 0 && k.Cursor.Generation == 0, "%+v, oversize %+v", k.Cursor, k.oversize)
		})
	}
}

func TestOversize(t *testing.T) {
	w := newWorld(t)
	w.cfg.Cap, w.cfg.TurnBytes = 100<<10, 64<<10
	just, over := lines("just", 1, 100<<10+1), lines("over", 1, 500<<10)
	body := lines("a", 3, 100) + over + lines("b", 300, 1000) + just + over + just + lines("c", 1, 50)
	w.write("p/a.jsonl", body)
	w.write("p/b.jsonl", over+"{}\n")
	w.start()
	check := func(rel, name string, n int) kept {
		t.Helper()
		want := dots(w.read(rel), 100<<10)
		w.until(rel+" arrives", func() bool {
			k := w.mem.named(name)
			return len(k) == 1 && bytes.Equal(k[0].content, want)
		})
		k := w.mem.named(name)[0]
		kit.Equal(t, "oversize notes", len(k.oversize), n)
		for _, o := range k.oversize {
			kit.Check(t, o.SHA256 == sha(w.read(rel)[o.Offset:o.Offset+o.Length]) && w.read(rel)[o.Offset+o.Length] == '\n',
				"wrong note %+v", o)
		}
		return k
	}
	check("p/a.jsonl", "a", 2)
	check("p/b.jsonl", "b", 1)
	piece := strings.Repeat("p", 50<<10)
	for range 8 { // one that grows beyond the cap in pieces
		w.add("p/b.jsonl", piece)
		w.sync()
	}
	w.add("p/b.jsonl", "\n"+lines("d", 3, 100))
	k := check("p/b.jsonl", "b", 2)
	kit.Equal(t, "generation", k.Cursor.Generation, 0)
	w.stop()
	w.start() // the marks next to such lines hold
	w.add("p/b.jsonl", "{}\n")
	kit.Equal(t, "generation after a restart", check("p/b.jsonl", "b", 2).Cursor.Generation, 0)
	w.write("p/b.jsonl", over+"{}\n"+strings.Repeat("q", 400<<10)+"\n{}\n") // within the second one
	check("p/b.jsonl", "b", 2)
}

// TestMemoryOfAnImport is not parallel: it measures the whole process.
func TestMemoryOfAnImport(t *testing.T) {
	w := &world{t: t, root: t.TempDir() + "/projects", mem: newMemory(t), stop: func() {}}
	w.cfg = Config{Roots: []Root{{Dir: w.root}}, Watch: "poll"}
	w.mkdir("p")
	for i := range 8 {
		w.write("p/"+string(rune('a'+i))+".jsonl", lines("m", 12_000, 1000))
	}
	sink := &discard{bell: make(chan struct{}, 1)}
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var most uint64
	sink.each = func(n int64) {
		if n%8 == 0 {
			runtime.GC() // what is held counts, not how soon garbage is collected
			runtime.ReadMemStats(&during)
			most = max(most, during.HeapAlloc)
		}
	}
	runDiscard(t, w.cfg, sink, 8*12_000*1000)
	got := int64(most - before.HeapAlloc)
	kit.Check(t, got <= 24<<20, "an import of 96 MB held %d KiB", got>>10)
}
