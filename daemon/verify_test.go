package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/proof"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
)

// TestVerifyNamesLines damages what the server has, and wants exactly the damaged lines named.
func TestVerifyNamesLines(t *testing.T) {
	text := records("/home/kim/shop", 0, 40)
	for name, c := range map[string]struct {
		damage func(g *memGeneration)
		want   control.FileDifference
	}{
		"one byte": {
			func(g *memGeneration) { g.lines[7] = bytes.Replace(g.lines[7], []byte("user"), []byte("uses"), 1) },
			control.FileDifference{Differ: []control.Range{{First: 7, Last: 7}}},
		},
		"lines lost": {
			func(g *memGeneration) { delete(g.lines, 3); delete(g.lines, 4); delete(g.lines, 39) },
			control.FileDifference{Missing: []control.Range{{First: 3, Last: 4}, {First: 39, Last: 39}}},
		},
		"lines too many": {
			func(g *memGeneration) { g.lines[40], g.end = []byte(`{"x":1}`), 41 },
			control.FileDifference{Extra: []control.Range{{First: 40, Last: 40}}},
		},
		"two lines swapped": {
			func(g *memGeneration) { g.lines[1], g.lines[2] = g.lines[2], g.lines[1] },
			control.FileDifference{Differ: []control.Range{{First: 1, Last: 2}}},
		},
		"the last newline": {
			func(g *memGeneration) { g.newline = false },
			control.FileDifference{Detail: "only the newline at the end differs"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			path := w.write("-p/"+sessionA+".jsonl", text)
			w.deliver()
			w.server.with(func() { c.damage(w.server.streams[sessionA][0]) })
			r := w.verify()
			c.want.SessionID, c.want.Path = sessionA, path
			diff := cmp.Diff([]control.FileDifference{c.want}, r.Differences)
			kit.Check(t, !r.Equal && diff == "", "equal %v, differences (-want +got):\n%s", r.Equal, diff)
		})
	}
}

// TestVerifyExcludedTypes tells lines that are left out from lines that are missing.
func TestVerifyExcludedTypes(t *testing.T) {
	w := newWorld(t)
	w.cfg.ExcludeTypes = []string{"noise"}
	w.startWith("-p/"+sessionA+".jsonl", record("/home/kim/shop", 0)+"{\"type\":\"noise\"}\n"+record("/home/kim/shop", 1))
	r := w.verify()
	kit.Check(t, r.Equal && r.Excluded == 1 && r.Lines == 2, "verify: %+v", r)
	w.server.with(func() { delete(w.server.streams[sessionA][0].lines, 2) })
	r = w.verify()
	kit.Check(t, !r.Equal && len(r.Differences) == 1 && r.Differences[0].Missing[0].First == 2, "verify with line 2 lost: %+v", r)
}

// TestVerifyBindsPlaces: the same lines at other places are another transcript, wherever lines may rightly be missing.
func TestVerifyBindsPlaces(t *testing.T) {
	first, second, noise := record("/home/kim/shop", 0), record("/home/kim/shop", 1), "{\"type\":\"noise\"}\n"
	move := func(from, to int64) func(g *memGeneration) {
		return func(g *memGeneration) { g.lines[to] = g.lines[from]; delete(g.lines, from) }
	}
	for name, c := range map[string]struct {
		text   string
		damage func(g *memGeneration) // nil: none
	}{
		"as it is":                    {noise + first + noise + second + noise + noise, nil},
		"nothing left out":            {first + second, nil},
		"everything left out":         {noise + noise, nil},
		"before the line between":     {first + noise + second, move(2, 1)},
		"a view a line shorter":       {first + noise + second, func(g *memGeneration) { move(2, 1)(g); g.end = 2 }},
		"behind a line that is there": {first + second + noise, move(1, 2)},
		"from the start":              {noise + first, move(1, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.ExcludeTypes = []string{"noise"}
			w.startWith("-p/"+sessionA+".jsonl", c.text)
			w.server.mu.Lock()
			if c.damage != nil {
				c.damage(w.server.streams[sessionA][0])
			}
			w.server.mu.Unlock()
			r := w.verify()
			kit.Check(t, r.Equal == (c.damage == nil) && r.Equal != (len(r.Differences) > 0), "equal %t, %+v", r.Equal, r.Differences)
		})
	}
}

// TestVerifyOversize: of a line beyond the cap the note is compared, and a line below the cap is a line, whatever the cap is.
func TestVerifyOversize(t *testing.T) {
	long := func(n int) string { return `{"type":"user","text":"` + strings.Repeat("x", n) + "\"}\n" }
	text := record("/home/kim/shop", 0) + long(2000) + long(200) + long(300<<10) + record("/home/kim/shop", 1)
	note := func(change func(*transcript.Oversize)) func(g *memGeneration) {
		return func(g *memGeneration) { n := g.notes[1]; change(&n); g.notes[1] = n }
	}
	for name, c := range map[string]struct {
		limit  int64
		over   int64
		damage func(g *memGeneration) // of line 1; nil: none
	}{
		"far below the buffer": {1 << 10, 2, nil},
		"above it":             {1 << 20, 0, nil},
		"at a line's length":   {int64(len(long(2000)) - 1), 1, nil},
		"another digest":       {1 << 10, 2, note(func(n *transcript.Oversize) { n.SHA256[0] ^= 1 })},
		"another length":       {1 << 10, 2, note(func(n *transcript.Oversize) { n.Length++ })},
		"another place":        {1 << 10, 2, note(func(n *transcript.Oversize) { n.Offset++ })},
		"no note":              {1 << 10, 2, func(g *memGeneration) { delete(g.notes, 1) }},
		"another line":         {1 << 10, 2, func(g *memGeneration) { delete(g.notes, 1); g.lines[1] = []byte("{}") }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cfg.LineCap = c.limit
			w.startWith("-p/"+sessionA+".jsonl", text)
			w.server.mu.Lock()
			if c.damage != nil {
				c.damage(w.server.streams[sessionA][0])
			}
			w.server.mu.Unlock()
			r := w.verify()
			kit.Check(t, r.Equal == (c.damage == nil) && r.Oversize == c.over && r.Lines == 5-c.over,
				"equal %t, %d oversize, %d lines: %+v", r.Equal, r.Oversize, r.Lines, r.Differences)
			kit.Check(t, r.Equal || len(r.Differences) == 1 && len(r.Differences[0].Missing)+len(r.Differences[0].Differ) == 1,
				"%+v", r.Differences)
		})
	}
}

// TestVerifyLowerCap: what was sent whole when the cap was higher is compared whole.
func TestVerifyLowerCap(t *testing.T) {
	w := newWorld(t)
	w.startWith("-p/"+sessionA+".jsonl", record("/home/kim/shop", 0)+strings.Repeat("y", 5000)+"\n")
	w.stop()
	w.cfg.LineCap = 1 << 10
	w.start()
	r := w.verify()
	kit.Check(t, r.Equal && r.Oversize == 1, "%+v", r)
	w.server.with(func() { w.server.streams[sessionA][0].lines[1][7] = 'z' })
	r = w.verify()
	kit.Check(t, !r.Equal && len(r.Differences) == 1 && len(r.Differences[0].Differ) == 1, "%+v", r)
}

// TestVerifyAsterisks: asterisks stand for a secret only where secrets are masked.
func TestVerifyAsterisks(t *testing.T) {
	t.Parallel()
	for _, masked := range []bool{true, false} {
		w := newSerialWorld(t)
		if w.cfg.Redact = "off"; masked {
			w.cfg.Redact = "on"
		}
		w.startWith("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 10))
		w.server.mu.Lock()
		g := w.server.streams[sessionA][0]
		g.lines[7] = bytes.Replace(g.lines[7], []byte("user"), []byte("****"), 1)
		w.server.mu.Unlock()
		r := w.verify()
		kit.Check(t, r.Equal == masked && masked == (r.Unproven == 1), "masked %t: equal %t, %d unproven, %+v", masked, r.Equal, r.Unproven, r.Differences)
		w.stop()
	}
}

// TestVerifyMeanwhile: sessions that go on and begin between the delivery and the comparison are no difference.
func TestVerifyMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.server.taking = sync.OnceFunc(func() {
		w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 3, 6))
		w.write("-p/"+sessionB+".jsonl", `{"type":"user","text":"its first line`)
		w.until("it is read", func() bool {
			s := w.status()
			return s.Outbox.Entries == 6 && s.Files.Tracked == 2
		})
		w.server.with(func() { w.server.refusals = 2 })
	})
	w.start()
	if _, err := w.client.Pause(t.Context(), control.PauseRequest{}); err != nil { // until the sync
		t.Fatal(err)
	}
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 3))
	w.until("it is read", func() bool { return w.status().Outbox.Entries == 3 })
	r := w.verify()
	kit.Check(t, r.Equal && r.Began == 1 && r.Lines == 6, "%+v", r)
	r = w.verify()
	kit.Check(t, r.Equal && r.Began == 0 && r.Unfinished == 1, "half a line that was there before: %+v", r)
}

// TestVerifyRewound compares with the generation that is on disk now, whether it begins at line 0 or behind a mark.
func TestVerifyRewound(t *testing.T) {
	t.Parallel()
	for _, all := range []int{40, 3000} {
		w := newSerialWorld(t)
		path := w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, all))
		w.deliver()
		left := records("/home/kim/shop", 0, all-10)
		kit.Must(t, os.Truncate(path, int64(len(left))))
		w.sync()
		r := w.verify()
		kit.Check(t, r.Equal && r.Transcripts[0].Generation == 1 && r.Lines == int64(all-10), "verify after a shrink: %+v", r)
		kit.Equal(t, "the server's text", w.server.newest(sessionA), left)
		w.server.mu.Lock()
		start := w.server.streams[sessionA][1].start
		kit.Check(t, (start > 0) == (len(left) > 64<<10) && start <= int64(all-10), "of %d lines, the generation begins at %d", all-10, start)
		w.server.mu.Unlock()
		w.stop()
	}
}

// TestVerifyUnreachable says which kind of trouble it is, for the exit code.
func TestVerifyUnreachable(t *testing.T) {
	t.Parallel()
	for status, code := range map[int]string{401: control.CodeRefusedKey, 503: control.CodeUnreachable} {
		w := newSerialWorld(t)
		w.server.status = status
		w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 3))
		w.start()
		w.until(fmt.Sprintf("verify says %s when the server answers %d", code, status), func() bool {
			_, err := w.client.Verify(t.Context(), control.VerifyRequest{Timeout: "300ms"}, nil) // which may be over before
			var known *control.Error
			return asControlError(err, &known) && known.Code == code
		})
		w.stop()
	}
}

func asControlError(err error, target **control.Error) bool { return errors.As(err, target) }

// TestVerifyLastLineMeanwhile delivers a last line without newline while the server is asked: it is on both sides.
func TestVerifyLastLineMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 3))
	last := `{"type":"user","n":3}`
	w.server.asked = sync.OnceFunc(func() {
		w.write("-p/"+sessionA+".jsonl", last)
		w.until("the last line arrives", func() bool { return strings.HasSuffix(w.server.newest(sessionA), last) })
	})
	w.deliver()
	r := w.verify()
	kit.Check(t, r.Equal, "verify: %+v", r)
}

// TestRootAway calls nothing delivered or equal while a folder that held transcripts cannot be listed.
func TestRootAway(t *testing.T) {
	w := newWorld(t)
	w.startWith("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 3))
	kit.Must(t, os.Rename(w.root, w.root+".away"))
	r := w.sync()
	kit.Check(t, !r.Done && r.Reason == proof.ReasonUnreadable, "sync without the root: %+v", r)
	v := w.verify()
	kit.Check(t, !v.Equal && v.Incomplete != "", "verify without the root: %+v", v)
	kit.Must(t, os.Rename(w.root+".away", w.root))
	r = w.sync()
	kit.Check(t, r.Done, "sync with the root back: %+v", r)
	v = w.verify()
	kit.Check(t, v.Equal, "verify with the root back: %+v", v)
}
