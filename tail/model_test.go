package tail

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is a few transcripts that anything may happen to, and a tailer that is started and stopped meanwhile. The
// file system itself is the model: at every sync the memory holds exactly the whole lines of every file.
type model struct {
	w    *world
	live map[string]bool // paths that are on disk
	runs bool
	n    int
}

var modelPaths = []string{"p/a.jsonl", "p/b.jsonl", "q/a.jsonl", "q/agent-1.jsonl", "p/a/subagents/agent-1.jsonl", "q/a/subagents/w/agent-1.jsonl"}

func (m *model) text(rt *rapid.T) string {
	m.n++
	size := rapid.SampledFrom([]int{40, 40, 200, 3000, 70 << 10}).Draw(rt, "size")
	text := lines(fmt.Sprint("m", m.n), rapid.IntRange(1, 30).Draw(rt, "lines"), size)
	if rapid.IntRange(0, 3).Draw(rt, "half") == 0 {
		text = text[:len(text)-rapid.IntRange(1, min(39, len(text)-1)).Draw(rt, "cut")]
	}
	return text
}

func (m *model) some(rt *rapid.T) (string, bool) {
	var there []string
	for _, p := range modelPaths {
		if m.live[p] {
			there = append(there, p)
		}
	}
	if len(there) == 0 {
		return "", false
	}
	return rapid.SampledFrom(there).Draw(rt, "path"), true
}

func (m *model) append(rt *rapid.T) {
	rel := rapid.SampledFrom(modelPaths).Draw(rt, "path")
	m.w.add(rel, m.text(rt))
	m.live[rel] = true
}

func (m *model) truncate(rt *rapid.T) {
	if rel, ok := m.some(rt); ok {
		size := rapid.IntRange(0, len(m.w.read(rel))).Draw(rt, "to")
		m.w.must(os.Truncate(m.w.path(rel), int64(size)))
	}
}

func (m *model) rewrite(rt *rapid.T) {
	rel, ok := m.some(rt)
	if !ok {
		return
	}
	old := string(m.w.read(rel))
	text := old[:rapid.IntRange(0, len(old)).Draw(rt, "keep")] + m.text(rt)
	if rapid.Bool().Draw(rt, "in place") {
		m.w.write(rel, text)
	} else {
		m.w.replace(rel, text)
	}
}

func (m *model) edit(rt *rapid.T) {
	if rel, ok := m.some(rt); ok && len(m.w.read(rel)) > 0 {
		edit(m.w, rel, int64(rapid.IntRange(0, len(m.w.read(rel))-1).Draw(rt, "at")))
	}
}

func (m *model) rename(rt *rapid.T) {
	from, ok := m.some(rt)
	to := rapid.SampledFrom(modelPaths).Draw(rt, "to")
	if !ok || from == to {
		return
	}
	m.w.rename(from, to)
	m.live[from], m.live[to] = false, true
}

func (m *model) remove(rt *rapid.T) {
	if rel, ok := m.some(rt); ok {
		m.w.must(os.Remove(m.w.path(rel)))
		m.live[rel] = false
	}
}

func (m *model) restart(*rapid.T) {
	if m.runs {
		m.w.stop()
	} else {
		m.w.start()
	}
	m.runs = !m.runs
}

// compare syncs and holds every file against what arrived of it.
func (m *model) compare(rt *rapid.T) {
	if !m.runs {
		return
	}
	m.w.sync()
	byPath := map[string]kept{}
	m.w.mem.mu.Lock()
	defer m.w.mem.mu.Unlock()
	for _, k := range m.w.mem.files {
		if k.Gone == 0 {
			byPath[k.File.Path] = *k
		}
	}
	for _, rel := range modelPaths {
		if !m.live[rel] {
			continue
		}
		want, err := os.ReadFile(m.w.path(rel))
		if err != nil {
			rt.Fatal(err)
		}
		want = want[:lastLine(want)]
		if got := byPath[m.w.path(rel)]; !bytes.Equal(got.content, want) {
			rt.Fatalf("%s: %d bytes arrived, %d are on disk; same up to %d; %+v", rel, len(got.content), len(want), same(got.content, want), got.Tracked)
		}
	}
}

func same(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "model")
		if err != nil {
			rt.Fatal(err)
		}
		w := &world{t: t, root: filepath.Join(dir, "projects"), mem: newMemory(t), stop: func() {}}
		w.cfg = Config{
			Roots: []Root{{Dir: w.root}}, Quiet: 5 * time.Millisecond, ScanActive: 5 * time.Millisecond, ScanAll: 20 * time.Millisecond,
			PollInterval: 5 * time.Millisecond, ScrubAfter: 10 * time.Millisecond, TurnBytes: 100 << 10, Workers: 2,
			Watch: rapid.SampledFrom([]string{"events", "poll"}).Draw(rt, "watch"),
		}
		w.mkdir("")
		m := &model{w: w, live: map[string]bool{}}
		defer func() { w.stop() }()
		rt.Repeat(map[string]func(*rapid.T){
			"append": m.append, "append more": m.append, "truncate": m.truncate, "rewrite": m.rewrite, "edit": m.edit,
			"rename": m.rename, "remove": m.remove, "restart": m.restart, "compare": m.compare, "": func(*rapid.T) {},
		})
		if !m.runs {
			m.restart(rt)
		}
		m.compare(rt)
		if t.Failed() {
			rt.Fatal(strings.TrimSpace(w.dump()))
		}
	})
}
