package tail

import (
	"sync"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

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
