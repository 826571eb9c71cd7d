package tail

import (
	"bytes"
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
	w.write("p/a.jsonl", body)
	w.start()
	k := w.main("p/a.jsonl")
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
