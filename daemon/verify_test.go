package daemon

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/syncer"
)

// TestVerifyNamesLines damages what the server has, and wants exactly the damaged lines named.
func TestVerifyNamesLines(t *testing.T) {
	t.Parallel()
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
			w.start()
			w.sync()
			w.server.mu.Lock()
			c.damage(w.server.streams[sessionA][0])
			w.server.mu.Unlock()
			r := w.verify()
			c.want.SessionID, c.want.Path = sessionA, path
			if diff := cmp.Diff([]control.FileDifference{c.want}, r.Differences); r.Equal || diff != "" {
				t.Errorf("equal %v, differences (-want +got):\n%s", r.Equal, diff)
			}
		})
	}
}

// TestVerifyExcludedTypes tells lines that are left out from lines that are missing.
func TestVerifyExcludedTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.ExcludeTypes = []string{"noise"}
	w.write("-p/"+sessionA+".jsonl", record("/home/kim/shop", 0)+"{\"type\":\"noise\"}\n"+record("/home/kim/shop", 1))
	w.start()
	w.sync()
	if r := w.verify(); !r.Equal || r.Excluded != 1 || r.Lines != 2 {
		t.Errorf("verify: %+v", r)
	}
	w.server.mu.Lock()
	delete(w.server.streams[sessionA][0].lines, 2)
	w.server.mu.Unlock()
	if r := w.verify(); r.Equal || len(r.Differences) != 1 || r.Differences[0].Missing[0].First != 2 {
		t.Errorf("verify with line 2 lost: %+v", r)
	}
}

// TestVerifyRewound compares with the generation that is on disk now.
func TestVerifyRewound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 40))
	w.start()
	w.sync()
	if err := os.Truncate(path, int64(len(records("/home/kim/shop", 0, 30)))); err != nil {
		t.Fatal(err)
	}
	w.sync()
	if r := w.verify(); !r.Equal || r.Transcripts[0].Generation != 1 || r.Lines != 30 {
		t.Errorf("verify after a shrink: %+v", r)
	}
	if got, want := w.server.newest(sessionA), records("/home/kim/shop", 0, 30); got != want {
		t.Errorf("the server has %d bytes, want %d", len(got), len(want))
	}
}

// TestVerifyUnreachable says which kind of trouble it is, for the exit code.
func TestVerifyUnreachable(t *testing.T) {
	t.Parallel()
	for status, code := range map[int]string{401: control.CodeRefusedKey, 503: control.CodeUnreachable} {
		w := newWorld(t)
		w.server.status = status
		w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 3))
		w.start()
		_, err := w.client.Verify(t.Context(), control.VerifyRequest{Timeout: "300ms"}, nil)
		var known *control.Error
		if !asControlError(err, &known) || known.Code != code {
			t.Errorf("server answers %d: %v, want code %s", status, err, code)
		}
		w.stop()
	}
}

func asControlError(err error, target **control.Error) bool { return errors.As(err, target) }

// TestVerifyLastLineMeanwhile delivers a last line without newline while the server is asked: it is on both sides.
func TestVerifyLastLineMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 3))
	last := `{"type":"user","n":3}`
	w.server.asked = sync.OnceFunc(func() {
		w.write("-p/"+sessionA+".jsonl", last)
		w.until("the last line arrives", func() bool { return strings.HasSuffix(w.server.newest(sessionA), last) })
	})
	w.start()
	w.sync()
	if r := w.verify(); !r.Equal {
		t.Errorf("verify: %+v", r)
	}
}

// TestRootAway calls nothing delivered or equal while a folder that held transcripts cannot be listed.
func TestRootAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 3))
	w.start()
	w.sync()
	if err := os.Rename(w.root, w.root+".away"); err != nil {
		t.Fatal(err)
	}
	if r := w.sync(); r.Done || r.Reason != syncer.ReasonUnreadable {
		t.Errorf("sync without the root: %+v", r)
	}
	if r := w.verify(); r.Equal || r.Incomplete == "" {
		t.Errorf("verify without the root: %+v", r)
	}
	if err := os.Rename(w.root+".away", w.root); err != nil {
		t.Fatal(err)
	}
	if r := w.sync(); !r.Done {
		t.Errorf("sync with the root back: %+v", r)
	}
	if r := w.verify(); !r.Equal {
		t.Errorf("verify with the root back: %+v", r)
	}
}
