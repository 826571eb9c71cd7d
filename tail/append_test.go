package tail

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

func TestAppend(t *testing.T) {
	w := newWorld(t)
	w.follow("p/a.jsonl", lines("a", 3, 100))
	for range 5 {
		w.add("p/a.jsonl", lines("b", 2, 100))
		w.main("p/a.jsonl")
	}
	k := w.main("p/a.jsonl")
	kit.Check(t, k.sent == int64(len(w.read("p/a.jsonl"))) && k.Cursor.Generation == 0 && k.Cursor.Line == 13,
		"sent %d bytes, cursor %+v", k.sent, k.Cursor)
}

func TestLineCutAnywhere(t *testing.T) {
	w := newWorld(t)
	w.cfg.Quiet = patience // the halves are not to be offered on their own
	line := `{"text":"aé\ud83d€` + "\x00\x00" + `"}` + "\r\n"
	w.follow("p/a.jsonl", "{}\n")
	for cut := 1; cut < len(line); cut++ {
		w.add("p/a.jsonl", line[:cut])
		w.sync()
		k := w.mem.named("a")[0]
		kit.Require(t, int(k.Cursor.Offset) == len(w.read("p/a.jsonl"))-cut, "cut at %d: cursor at %d", cut, k.Cursor.Offset)
		w.add("p/a.jsonl", line[cut:])
		w.main("p/a.jsonl")
	}
	if k := w.main("p/a.jsonl"); k.sent != int64(len(k.content)) || int(k.Cursor.Line) != len(line) {
		t.Errorf("sent %d of %d bytes, %d lines", k.sent, len(k.content), k.Cursor.Line)
	}
}

func TestOddLines(t *testing.T) {
	w := newWorld(t)
	w.write("p/a.jsonl", strings.Join([]string{
		"", "\x00\x00\x00", `{"a":1}{"b":2}`, "  {}  ", "not json", "\r", `{"lone":"\ud83d"}`, "",
	}, "\n"))
	w.start()
	kit.Equal(t, "lines", w.main("p/a.jsonl").Cursor.Line, 7)
}

func TestWhatIsATranscript(t *testing.T) {
	w := newWorld(t)
	const body = "{}\n"
	want := map[string]string{
		"p/0a1b.jsonl":                               "0a1b",
		"p/agent-old.jsonl":                          "agent-old",
		"p/s1/subagents/agent-1.jsonl":               "s1/agent-1",
		"p/s1/subagents/workflows/r1/agent-2.jsonl":  "s1/agent-2",
		"p/s1/subagents/a/b/c/agent-aside_q-3.jsonl": "s1/agent-aside_q-3",
		"p2/pretty.jsonl":                            "pretty",
	}
	for rel := range want {
		w.write(rel, body)
	}
	for _, rel := range []string{
		"top.jsonl", "p/a.jsonl.compact.tmp.00ff", "p/x.compact.tmp.00ff.jsonl", "p/.hidden.jsonl", "p/a.json", "p/memory/m.jsonl",
		"p/s1/journal.jsonl", "p/s1/subagents/workflows/r1/journal.jsonl", "p/s1/subagents/agent-1.meta.json",
		"p/s1/tool-results/x.txt", "p/s1/tool-results/agent-9.jsonl", "p/s2/subagents/other.jsonl",
	} {
		w.write(rel, body)
	}
	w.write("p/empty.jsonl", "")
	w.mkdir("p/dir.jsonl")
	w.write("outside/x.jsonl", body)
	w.must(os.Rename(w.path("outside"), w.root+"-outside"))
	w.must(os.Symlink(w.root+"-outside", w.path("linked")))
	w.must(os.Symlink(w.root+"-outside/x.jsonl", w.path("p/linked.jsonl")))
	want["linked/x.jsonl"] = "x" // p/linked.jsonl is another name of it
	w.start()
	for rel, name := range want {
		w.arrived(rel, name, 1)
	}
	w.sync()
	kit.Equal(t, "files are followed", len(w.tail.Files()), len(want))
	w.add("p/empty.jsonl", body) // no session before, one now
	w.main("p/empty.jsonl")
	for _, f := range w.tail.Files() {
		kit.Equal(t, f.File.Path+" is of kind", (f.File.Kind == Agent), strings.Contains(f.File.Name, "agent-"))
	}
}

func TestRootItselfMayBeALinkAndAppearLate(t *testing.T) {
	w := newWorld(t)
	w.must(os.Remove(w.root))
	w.start()
	w.until("the missing root is said", func() bool { return len(w.tail.Unlisted()) == 1 })
	w.must(os.MkdirAll(w.root+"-real/p", 0o700))
	w.must(os.Symlink(w.root+"-real", w.root))
	w.write("p/a.jsonl", "{}\n")
	w.main("p/a.jsonl")
	kit.Equal(t, "folders unlisted", len(w.tail.Unlisted()), 0)
}

func TestTwoRootsOfOneFolder(t *testing.T) {
	w := newWorld(t)
	w.write("p/a.jsonl", "{}\n")
	w.must(os.Symlink(w.root, w.root+"-alias"))
	w.cfg.Roots = append(w.cfg.Roots, Root{Dir: w.root + "-alias"}, Root{Dir: w.root + "/"})
	w.startWith("p/a.jsonl")
	w.sync()
	kit.Equal(t, "followed as", len(w.tail.Files()), 1)
}

func TestHistory(t *testing.T) {
	w := newWorld(t)
	w.cfg.Roots[0].History = w.path("../history.jsonl")
	w.start()
	w.write("../history.jsonl", lines("h", 3, 60))
	w.arrived("../history.jsonl", "history", 1)
	w.add("../history.jsonl", lines("i", 3, 60))
	w.arrived("../history.jsonl", "history", 1)
	w.replace("../history.jsonl", lines("h", 1, 60)) // a purge
	k := w.arrived("../history.jsonl", "history", 1)
	kit.Check(t, k.Cursor.Generation != 0 && k.File.Kind == History && k.File.Root == w.root, "after a purge: %+v", k.Tracked)
	s := w.tail.Stats()
	kit.Check(t, s.Tracked == 1 && s.Mains == 0, "stats %+v", s)
}

func TestRestartReadsOn(t *testing.T) {
	w := newWorld(t)
	w.write("p/a.jsonl", lines("a", 1000, 300))
	w.write("p/b.jsonl", lines("b", 10, 300))
	w.age("p/b.jsonl", 3*coarseTick)
	w.startWith("p/a.jsonl")
	w.main("p/b.jsonl")
	w.stop()
	w.add("p/a.jsonl", lines("c", 10, 300))
	opened := map[string]int{}
	w.prep = func(t *Tailer) {
		t.faults.open = func(path string) error { // under the memory's lock: workers are several
			w.mem.do(func() { opened[path]++ })
			return nil
		}
	}
	k := w.startWith("p/a.jsonl")
	kit.Equal(t, "bytes sent", k.sent, int64(len(w.read("p/a.jsonl"))))
	w.mem.do(func() { kit.Check(t, opened[w.path("p/a.jsonl")] != 0, "the changed file was not opened") })
}

// Before tells what was there when a run began from what was written while it looked on.
func TestBefore(t *testing.T) {
	w := newWorld(t)
	w.cfg.TurnBytes = 1 << 10 // so that a file comes in several chunks
	var mu sync.Mutex
	seen := map[string][]int64{} // Before of the chunks, by name; guarded by mu
	w.mem.note = func(chunks []Chunk) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range chunks {
			seen[c.File.Name] = append(seen[c.File.Name], c.Before)
		}
	}
	check := func(what, name string, want int64, least int) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		kit.Check(t, len(seen[name]) >= least, "%s: %d chunks", what, len(seen[name]))
		for _, got := range seen[name] {
			kit.Equal(t, what+": before", got, want)
		}
		delete(seen, name)
	}
	w.write("p/a.jsonl", lines("a", 50, 100))
	size := int64(len(w.read("p/a.jsonl")))
	w.startWith("p/a.jsonl")
	check("an import", "a", size, 2)
	w.add("p/a.jsonl", lines("b", 1, 100))
	w.main("p/a.jsonl")
	check("a line more", "a", 0, 1)
	w.write("p/b.jsonl", lines("c", 3, 100))
	w.main("p/b.jsonl")
	check("a new file", "b", 0, 1)
	w.stop()
	w.add("p/a.jsonl", lines("d", 2, 100))
	size = int64(len(w.read("p/a.jsonl")))
	w.startWith("p/a.jsonl")
	check("what came between two runs", "a", size, 1)
	w.add("p/a.jsonl", lines("e", 1, 100))
	w.main("p/a.jsonl")
	check("a line after that", "a", 0, 1)
	w.stop()
	w.tail.mu.Lock()
	defer w.tail.mu.Unlock()
	kit.Equal(t, "sizes are still remembered", len(w.tail.table.before), 0)
}

func TestCursorEnds(t *testing.T) {
	text := []byte(lines("a", 100, 100))
	for _, n := range []int{0, 1, 100, AnchorSize, AnchorSize + 1, len(text)} {
		c := Cursor{Offset: int64(n), Anchor: anchorOf(nil, text[:n])}
		kit.Check(t, c.Ends(text[max(0, n-AnchorSize):n]) && c.Ends(text[:n]), "%d bytes do not end as they do", n)
		kit.Check(t, n <= 0 || !c.Ends(text[:n-1]) && (!c.Ends(append([]byte{'x'}, text[1:n]...)) || n > AnchorSize),
			"other %d bytes end so", n)
	}
}

// discard is a sink that takes everything and keeps nothing but cursors.
type discard struct {
	mu    sync.Mutex
	bytes int64
	calls int64
	each  func(calls int64)
	bell  chan struct{}
}

func (d *discard) Deliver(_ context.Context, chunks []Chunk) ([]Result, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls++; d.each != nil {
		d.each(d.calls)
	}
	for i := range chunks {
		d.bytes += int64(len(chunks[i].Lines))
	}
	select {
	case d.bell <- struct{}{}:
	default:
	}
	return make([]Result, len(chunks)), nil
}

func (d *discard) HasSpace(bool) bool                                 { return true }
func (d *discard) Load(context.Context) ([]Tracked, error)            { return nil, nil }
func (d *discard) Reload(context.Context, FileID) (Tracked, error)    { return Tracked{}, os.ErrNotExist }
func (d *discard) Marks(context.Context, FileID) ([]Mark, error)      { return nil, nil }
func (d *discard) Update(context.Context, []Tracked) error            { return nil }
func (d *discard) Forget(context.Context, []FileID) ([]FileID, error) { return nil, nil }

// runDiscard reads until so many bytes have come.
func runDiscard(t *testing.T, cfg Config, sink *discard, want int64) {
	tl := New(cfg, sink, sink)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tl.Run(ctx) }()
	limit := time.After(2 * time.Minute)
	for {
		sink.mu.Lock()
		got := sink.bytes
		sink.mu.Unlock()
		if got >= want {
			break
		}
		select {
		case <-sink.bell:
		case <-limit:
			t.Fatalf("%d of %d bytes", got, want)
		}
	}
	cancel()
	kit.Must(t, <-done)
}

const filedID = "00000000-0000-4000-8000-0000000000"

// Transcripts that a user moved below a root are delivered wherever they lie, with their agents.
func TestFiledAway(t *testing.T) {
	w := newWorld(t)
	here := []string{
		"p/" + filedID + "01.jsonl", filedID + "02.jsonl", "p/p/" + filedID + "03.jsonl",
		"archive/p/" + filedID + "04.jsonl", "archive/p/" + filedID + "04/subagents/agent-1.jsonl",
		"archive/2026/web.app/" + filedID + "05.jsonl", "p/" + filedID + "01/" + filedID + "06.jsonl",
		"archive/p/agent-2.jsonl", "p/old.jsonl/" + filedID + "07 2.jsonl", "agent-3.jsonl",
		"p/" + filedID + "01/subagents/workflows/run/agent-4.jsonl",
	}
	for _, rel := range here {
		w.write(rel, lines(rel, 3, 100))
	}
	w.start()
	w.present(here...)
	for _, f := range w.tail.Files() {
		want := filepath.Dir(f.File.Path)
		if i := strings.Index(want, string(filepath.Separator)+"subagents"); i >= 0 {
			want = filepath.Dir(want[:i])
		}
		kit.Equal(t, f.File.Path+" lies in the project", f.File.ProjectFolder(), want)
	}
	w.add("archive/p/"+filedID+"04.jsonl", lines("more", 3, 100))
	w.present(here...)
	w.main("archive/p/" + filedID + "04.jsonl")
	left := w.tail.Stats().Stray
	kit.Check(t, len(left) <= 0, "stray: %v", left)
	known := map[string]File{}
	for _, f := range w.tail.Files() {
		f.File.ID, f.File.Copy, f.File.Stat = 0, 0, Stat{}
		known[f.File.Path] = f.File
	}
	Walk(w.root, func(f File) {
		f.Stat = (Stat{})
		kit.Check(t, f == known[f.Path], "walked: %+v, followed: %+v", f, known[f.Path])
		delete(known, f.Path)
	}, func(dir string, err error) { t.Errorf("%s: %v", dir, err) })
	kit.Check(t, len(known) <= 0, "not walked: %v", known)
}

// A *.jsonl that is no transcript by its place and name is named, until it is gone.
func TestStray(t *testing.T) {
	w := newWorld(t)
	w.write("p/a.jsonl", lines("a", 3, 100))
	quiet := []string{
		"p/a/subagents/workflows/run/journal.jsonl", "p/a/tool-results/x.jsonl", "p/.hidden.jsonl", "p/memory/note.md",
		"p/empty/empty.jsonl", ".git/x.jsonl",
	}
	stray := []string{
		"history.jsonl", "p/a/notes.jsonl", "p/b.JSONL", "p/a/subagents/notes.jsonl", "archive/p/notes.jsonl",
		"1/2/3/4/5/6/7/8/9/10/11/12/x.jsonl",
	}
	for _, rel := range slices.Concat(quiet, stray) {
		w.write(rel, lines(rel, 1, 10))
	}
	w.write("p/empty/empty.jsonl", "")
	w.write("1/2/3/4/5/6/7/8/9/10/11/12/13/"+filedID+"01.jsonl", "{}\n")
	w.start()
	w.followed("p/a.jsonl")
	check := func(want []string) {
		t.Helper()
		var rel []string
		for _, path := range w.tail.Stats().Stray {
			r := kit.Try(filepath.Rel(w.root, path)).Must(w.t)
			rel = append(rel, filepath.ToSlash(r))
		}
		want = slices.Sorted(slices.Values(want))
		if slices.Sort(rel); !slices.Equal(rel, want) {
			t.Errorf("stray:\n%q\nwant\n%q", rel, want)
		}
	}
	check(stray)
	deep := w.tail.Stats().NotFollowed
	kit.Check(t, len(deep) == 1 && strings.Contains(deep[0], whyDeep), "too deep: %q", deep)
	w.sync() // the folders look as they did
	check(stray)
	w.rename("p/a/notes.jsonl", "q/notes.jsonl")
	w.followed("p/a.jsonl", "q/notes.jsonl")
	check(slices.Delete(stray, 1, 2))
}

// present fails the test unless these are the files that are followed, and everything in them was delivered.
func (w *world) present(rels ...string) {
	w.t.Helper()
	w.sync()
	var have []string
	for _, f := range w.tail.Present() {
		rel := kit.Try(filepath.Rel(w.root, f.File.Path)).Must(w.t)
		if have = append(have, filepath.ToSlash(rel)); f.Cursor.Offset != f.File.Stat.Size {
			w.t.Errorf("%s is read up to %d of %d", rel, f.Cursor.Offset, f.File.Stat.Size)
		}
	}
	slices.Sort(have)
	kit.Equal(w.t, "followed", have, slices.Sorted(slices.Values(rels)))
}
