package tail

import (
	"os"
	"strings"
	"testing"

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
