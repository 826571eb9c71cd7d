package tail

import (
	"math"
	"math/rand/v2"
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
