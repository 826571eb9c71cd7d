package tail

import (
	"bytes"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

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
