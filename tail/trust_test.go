package tail

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/fsnotify/fsnotify"

	"github.com/ccship/ccship/e2e/kit"
)

// deaf makes a tailer that does not run, whose events wait until hear is called: what it finds it has looked at.
func (w *world) deaf() (tl *Tailer, hear func()) {
	w.t.Helper()
	w.cfg.Local = func(string) bool { return true }
	w.stop()
	tl = New(w.cfg, w.mem, w.mem)
	known := kit.Try(w.mem.Load(w.t.Context())).Must(w.t)
	tl.loadKnown(known)
	gate := make(chan struct{})
	hear = sync.OnceFunc(func() { close(gate) })
	tl.faults.event = func(string) error { <-gate; return nil }
	var group sync.WaitGroup
	tl.startWatching(&group)
	w.t.Cleanup(func() { hear(); tl.stopWatching(); group.Wait() })
	tl.scanAll(w.t.Context(), "test")
	for _, d := range tl.table.folders {
		d.settled = true // as if it were some seconds later
	}
	return tl, hear
}

// old writes a transcript that nobody has touched for long, and a session's folder with an agent's.
func (w *world) old() {
	w.t.Helper()
	w.write("p/s.jsonl", lines("a", 3, 100))
	w.write("p/s/subagents/agent-1.jsonl", lines("a", 3, 100))
	for _, rel := range []string{"p/s/subagents/agent-1.jsonl", "p/s/subagents", "p/s", "p/s.jsonl", "p"} {
		w.age(rel, 24*time.Hour)
	}
	w.startWith("p/s.jsonl")
	w.arrived("p/s/subagents/agent-1.jsonl", "s/agent-1", 1)
}

// sees reports whether a quick listing notices that a file has grown.
func sees(w *world, tl *Tailer, rel string) bool {
	w.t.Helper()
	dir, name := splitPath(w.path(rel))
	f := tl.table.folders[dir].files[name]
	before := f.view().seen.Size
	w.add(rel, "{}\n")
	tl.scanAll(w.t.Context(), "")
	return f.view().seen.Size > before
}

// TestWatchedFoldersAreTrusted: what events would have reported is not asked for again in quick listings, and is in
// thorough ones.
func TestWatchedFoldersAreTrusted(t *testing.T) {
	w := newWorld(t)
	w.old()
	tl, hear := w.deaf()
	kit.Check(t, !sees(w, tl, "p/s.jsonl"), "a quick listing looks at files of a watched folder to which nothing happened")
	tl.scan.quicks = tl.quickLimit()
	kit.Check(t, sees(w, tl, "p/s.jsonl"), "a thorough listing does not look at every file")
	hear()
}

// TestTrustEnds: whatever could have kept an event away has files looked at.
func TestTrustEnds(t *testing.T) {
	for name, end := range map[string]func(w *world, tl *Tailer, d *folder){
		"polling":               func(_ *world, tl *Tailer, _ *folder) { tl.setWatch("poll", "test") },
		"not on a local disk":   func(_ *world, _ *Tailer, d *folder) { d.local = false },
		"watched since then":    func(_ *world, tl *Tailer, d *folder) { tl.unwatch(d) },
		"names may have come":   func(_ *world, _ *Tailer, d *folder) { d.settled = false },
		"touched lately":        func(_ *world, tl *Tailer, d *folder) { d.touched = tl.now() },
		"a link is followed":    func(_ *world, tl *Tailer, d *folder) { tl.table.folders[d.path+"-x"] = &folder{link: true} },
		"a watched link":        func(_ *world, tl *Tailer, d *folder) { tl.scan.links = map[string]place{d.path + "/l": {}} },
		"a file in trouble":     func(_ *world, _ *Tailer, d *folder) { d.files["s.jsonl"].fails = 1 },
		"another file in place": func(_ *world, _ *Tailer, d *folder) { d.files["s.jsonl"].pathTaken = true },
		"the folder was away": func(w *world, tl *Tailer, d *folder) {
			w.must(os.Rename(d.path, d.path+"-away"))
			w.must(os.Rename(d.path+"-away", d.path))
			tl.event(fsnotify.Event{Name: d.path, Op: fsnotify.Rename})
			d.self, _, _ = statEntry(d.path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.old()
			tl, hear := w.deaf()
			defer hear()
			end(w, tl, tl.table.folders[w.path("p")])
			kit.Check(t, sees(w, tl, "p/s.jsonl"), "it is not looked at")
		})
	}
}

// TestRestingSessions: the folders of a session that rests are looked at in one of a few quick listings.
func TestRestingSessions(t *testing.T) {
	w := newWorld(t)
	w.old()
	tl, hear := w.deaf()
	defer hear()
	seen := 0
	for range 2 * restTurns {
		tl.table.folders[w.path("p/s/subagents")].touched = tl.now() - watchKeep - time.Minute
		if sees(w, tl, "p/s/subagents/agent-1.jsonl") {
			seen++
		}
	}
	kit.Check(t, seen != 0 && seen <= 4, "looked at in %d of %d listings", seen, 2*restTurns)
}

// TestThoroughListingsTakeTheirShare: they come seldom only where events tell everything, and every hour at least.
func TestThoroughListingsTakeTheirShare(t *testing.T) {
	tl := New(Config{}, nil, nil)
	for cost, want := range map[time.Duration]int{time.Millisecond: quickRun, time.Second: 33, time.Minute: 59} {
		tl.scan.thorough = cost
		kit.Equal(t, fmt.Sprintf("%s: quick listings", cost), tl.quickLimit(), want)
	}
	tl.scan.looked = 1
	kit.Check(t, tl.quickLimit() == quickRun, "folders were looked at, and thorough listings are seldom")
}

// TestTicks: with events the main loop is woken for listings of what is active only, and without as often as it polls.
func TestTicks(t *testing.T) {
	tl := New(Config{ScanActive: 2 * time.Second, PollInterval: time.Second}, nil, nil)
	kit.Equal(t, "polling", tl.tickInterval(), time.Second)
	if tl.setWatch("events", ""); tl.tickInterval() != 2*time.Second {
		t.Errorf("events: %s", tl.tickInterval())
	}
}

// Verify sees each changed byte before the cursor, and says up to which mark the bytes are still the same.
func TestVerify(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 700_000)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	ends := []int64{70_000, 200_001, 640_000}
	var marks []Mark
	last := int64(0)
	for i, end := range ends {
		marks = append(marks, Mark{Offset: end, Line: int64(i+1) * 10, Hash: xxhash.Sum64(data[last:end])})
		last = end
	}
	c := Cursor{Offset: 690_000, Mark: last, Segment: xxhash.Sum64(data[last:690_000])}
	_, all, err := VerifyPrefix(iotest.HalfReader(bytes.NewReader(data)), marks, c)
	kit.Check(t, all && err == nil, "the very bytes: %v, %v", all, err)
	for at, want := range map[int64]int64{0: 0, 69_999: 0, 70_000: 70_000, 200_000: 70_000, 639_999: 200_001, 640_000: 640_000, 689_999: 640_000} {
		bad := bytes.Clone(data)
		bad[at] ^= 1
		m, all, err := VerifyPrefix(bytes.NewReader(bad), marks, c)
		kit.Check(t, !all && err == nil && m.Offset == want, "byte %d changed: %v, %v, the same up to %d, want %d", at,
			all, err, m.Offset, want)
	}
	_, all, err = VerifyPrefix(bytes.NewReader(data[:689_999]), marks, c)
	kit.Check(t, !all && err == nil, "cut short: %v, %v", all, err)
	data[695_000] ^= 1
	_, all, _ = VerifyPrefix(bytes.NewReader(data), marks, c)
	kit.Check(t, all, "what follows the cursor matters")
	broken := errors.New("broken")
	_, all, err = VerifyPrefix(io.MultiReader(bytes.NewReader(data[:1000]), iotest.ErrReader(broken)), marks, c)
	kit.Check(t, !all && errors.Is(err, broken), "a broken reader: %v, %v", all, err)
	_, all, err = VerifyPrefix(bytes.NewReader(nil), nil, Cursor{})
	kit.Check(t, all && err == nil, "nothing read: %v, %v", all, err)
}

// TestIDsAscendAsFilesAreRead: rows of files that are read one after another are neighbours in the state, in whatever
// order names and sizes are.
func TestIDsAscendAsFilesAreRead(t *testing.T) {
	w := newWorld(t)
	const n = 40
	for i := range n {
		rel := fmt.Sprintf("p%d/%02d.jsonl", i%3, i)
		w.write(rel, lines(fmt.Sprint(i), 1+i*5%7, 100))
		w.age(rel, time.Hour+time.Duration(i*17%n)*time.Hour)
	}
	w.start()
	var all []kept
	w.until("every file is read", func() bool {
		all = all[:0]
		for i := range n {
			all = append(all, w.mem.named(fmt.Sprintf("%02d", i))...)
		}
		return len(all) == n
	})
	slices.SortFunc(all, func(a, b kept) int { return cmp.Compare(b.File.Stat.ModTime, a.File.Stat.ModTime) })
	for i := 1; i < n; i++ {
		if gap := all[i].File.ID - all[i-1].File.ID; gap == 0 || gap > n*idGap {
			t.Errorf("%s is read behind %s: ids %x and %x", all[i].File.Path, all[i-1].File.Path, all[i].File.ID, all[i-1].File.ID)
		}
	}
}

// TestIDsOfARunAreNotThoseOfAnother: each run begins anywhere, so that an id that was forgotten is not given again.
func TestIDsOfARunAreNotThoseOfAnother(t *testing.T) {
	seen := map[FileID]bool{}
	for range 100 {
		tb := newTable(nil)
		for range 100 {
			id := tb.freeID()
			kit.Require(t, id != 0 && !seen[id], "id %x", id)
			seen[id] = true
		}
	}
}

// still makes a tailer that does not run over what was delivered before: the test is its main loop.
func (w *world) still() *Tailer {
	w.t.Helper()
	w.stop()
	w.cfg.Watch = "poll"
	tl := New(w.cfg, w.mem, w.mem)
	known := kit.Try(w.mem.Load(w.t.Context())).Must(w.t)
	tl.loadKnown(known)
	tl.scanAll(w.t.Context(), "test")
	return tl
}

func TestHintBelowARootThatIsGone(t *testing.T) {
	w := newWorld(t)
	k := w.follow("p/a.jsonl", lines("a", 3, 100))
	tl := w.still()
	w.must(os.Rename(w.root, w.root+"-unmounted"))
	for _, path := range []string{w.path("p/a.jsonl"), w.path("p")} {
		tl.scanHints(t.Context(), map[string]struct{}{path: {}})
	}
	if f := tl.table.byID[k.File.ID]; f.folder == nil || f.view().Gone != 0 || len(tl.Unlisted()) != 1 {
		t.Errorf("the file counts as gone: %+v, unlisted %v", f.view().Tracked, tl.Unlisted())
	}
}

func TestQuickListing(t *testing.T) {
	w := newWorld(t)
	w.write("p/a.jsonl", lines("a", 3, 100))
	w.write("p/s/subagents/agent-1.jsonl", lines("a", 3, 100))
	w.startWith("p/a.jsonl")
	tl := w.still()
	for _, d := range tl.table.folders {
		d.settled = true
	}
	scan := func(want int) {
		t.Helper()
		if tl.scanAll(t.Context(), ""); tl.Stats().Tracked != want {
			t.Errorf("%d files, not %d", tl.Stats().Tracked, want)
		}
	}
	scan(2)
	w.write("p/s/subagents/agent-2.jsonl", "{}\n")
	scan(3)
	w.must(os.Remove(w.path("p/s/subagents/agent-1.jsonl")))
	scan(2)
	w.write("p/empty.jsonl", "")
	scan(2)
	w.add("p/empty.jsonl", "{}\n") // its folder looks as it did
	scan(3)
	w.write("q/b.jsonl", "{}\n")
	scan(4)
	w.add("p/a.jsonl", "{}\n")
	scan(4)
	kit.Equal(t, "bytes", tl.Stats().Bytes, 300+3+3+3+3)
}

func TestEmptyTranscriptKeepsItsFolderFromQuickListings(t *testing.T) {
	w := newWorld(t)
	p := w.still().newListing(false)
	d := &folder{path: w.path("p"), level: projectLevel, settled: true}
	p.entry(d, &entry{name: "full.jsonl", kind: regular, stat: Stat{Size: 1}})
	kit.Check(t, d.settled, "not settled with a file that is followed")
	p.entry(d, &entry{name: "empty.jsonl", kind: regular})
	kit.Check(t, !d.settled, "settled with a file that may become a session without the folder's knowing")
}
