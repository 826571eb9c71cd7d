package tail

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// TestPrefixGoesOn: a cursor that a Prefix made is one that the tailer takes for its own: it reads on behind it, and
// still finds out that the bytes before it changed.
func TestPrefixGoesOn(t *testing.T) {
	for name, rewritten := range map[string]bool{"as it was": false, "rewritten": true} {
		t.Run(name, func(t *testing.T) { goOn(t, rewritten) })
	}
}

func goOn(t *testing.T, rewritten bool) {
	w := newWorld(t)
	body := lines("a", 400, 1000) // several marks
	k := w.follow("p/a.jsonl", body)
	var p Prefix
	half := strings.Index(body[len(body)/2:], "\n") + len(body)/2 + 1
	for _, line := range strings.SplitAfter(body[:half], "\n") {
		p.Add([]byte(line))
	}
	if p.Cursor(0).Offset != int64(half) || len(p.Marks()) == 0 {
		t.Fatalf("cursor %+v, %d marks", p.Cursor(0), len(p.Marks()))
	}
	w.mem.do(func() { // another caller set it to the middle, in another generation
		f := w.mem.files[k.File.ID]
		f.Cursor, f.Verified = p.Cursor(7), Stat{}
		f.content, f.marks = bytes.Clone(f.content[:half]), p.Marks()
	})
	if rewritten {
		w.write("p/a.jsonl", "{\"changed\":true}\n"+body[len("{\"changed\":true}\n"):])
	}
	w.tail.Reload(k.File.ID, 12345)
	want := uint32(7)
	if rewritten {
		want = 8
	}
	w.until("it goes on", func() bool {
		f := w.mem.named("a")[0]
		return f.Cursor.Generation == want && f.Cursor.Offset == int64(len(body))
	})
	w.main("p/a.jsonl")
	w.stop()
}

// meanwhile is a memory of which something changes after it was loaded, before the tailer has what was.
type meanwhile struct {
	*memory
	then func()
}

func (m meanwhile) Load(ctx context.Context) ([]Tracked, error) {
	all, err := m.memory.Load(ctx)
	m.then()
	return all, err
}

// TestReloadWhileLoading: a cursor that is set back while the tailer loads the one before counts, although no byte of
// the file changes any more.
func TestReloadWhileLoading(t *testing.T) {
	w := newWorld(t)
	k := w.follow("p/a.jsonl", lines("a", 3, 100))
	w.stop()
	w.prep = func(t *Tailer) {
		t.cursors = meanwhile{w.mem, func() {
			w.mem.do(func() {
				f := w.mem.files[k.File.ID]
				f.Cursor, f.Verified, f.content, f.marks = Cursor{Generation: 7}, Stat{}, nil, nil
			})
			t.Reload(k.File.ID)
		}}
	}
	w.start()
	w.until("it is read from there", func() bool {
		c := w.mem.named("a")[0].Cursor
		return c.Generation == 7 && c.Line == 3
	})
	w.main("p/a.jsonl")
}
