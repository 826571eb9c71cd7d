package tail

import (
	"os"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

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
