package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/derive"
	"github.com/ccship/ccship/daemon/proof"
	"github.com/ccship/ccship/e2e/kit"
)

// An import folds only what has a compaction; a question folds what it asks for, once; what is written, as it comes.
func TestFoldsOnlyForAReason(t *testing.T) {
	w := newWorld(t)
	history, compacted := kit.Chat{Session: sessionA}, kit.Chat{Session: sessionB}
	w.startWith(transcriptOf(sessionA), history.Prompt("one")+history.Answer("two"))
	n := w.figure("derived_lines_total")
	kit.Require(t, n == 0, "the import of %d lines folded %d", 2, n)
	w.stop()
	w.startWith(transcriptOf(sessionB), compacted.Prompt("one")+compacted.Compaction()+compacted.Answer("two"))
	n = w.figure("derived_lines_total")
	kit.Require(t, n == 3, "the import with a compaction folded %d lines, want its 3", n)
	for range 3 {
		got := said(w.messages(sessionA))
		kit.Require(t, len(got) == 2, "messages %q", got)
	}
	kit.Equal(t, "a question asked three times folded", w.figure("derived_lines_total"), 5)
	w.send(transcriptOf(sessionA), history.Prompt("three"))
	kit.Equal(t, "one line written folded", w.figure("derived_lines_total"), 6)
	w.stop()
	w.deliver()
	kit.Equal(t, "a restart folded", w.figure("derived_lines_total"), 0)
}

// A thousand messages later the memory is where it was.
func TestMemoryIsBounded(t *testing.T) {
	w := newSerialWorld(t)
	c := kit.Chat{Session: sessionA}
	w.start()
	grow := func(turns int) {
		var text strings.Builder
		for i := range turns {
			id := fmt.Sprintf("toolu_%d_%d", c.N, i)
			text.WriteString(c.Prompt("prompt "+id) + c.Call(id, "ls") + c.Result(id, strings.Repeat("o", 2000)) + c.Answer(strings.Repeat("a", 500)))
		}
		w.send(transcriptOf(sessionA), text.String())
		w.messages(sessionA)
	}
	held := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	grow(500)
	before, after := held(), int64(0)
	grow(2000)
	// The test's own server keeps what it gets, about 3.6 KB a turn. What is still under way holds some for a while.
	w.until("little more is held", func() bool { after = held(); return after-before-2000*5<<10 <= 2<<20 })
	t.Logf("%d KiB after 500 turns, %d KiB after 2 500", before>>10, after>>10)
}

// A line longer than the cap is stepped over, one longer than a slice is not.
func TestLongLines(t *testing.T) {
	w := newWorld(t)
	w.cfg.LineCap = 3 << 20
	c := kit.Chat{Session: sessionA}
	w.startWith(transcriptOf(sessionA), c.Prompt("one")+c.Answer(strings.Repeat("x", 2<<20))+c.Answer(strings.Repeat("y", 8<<20))+c.Answer("end"))
	m := w.messages(sessionA)
	kit.Check(t, m.Total == 3 && m.Messages[2].Content == "end" && m.Messages[2].Line == 3 && strings.HasPrefix(m.Messages[1].Content, "xx"),
		"%d messages, %.200q…", m.Total, said(m))
}

// What no row of the state can hold, and no server takes, keeps nothing else from being stored.
func TestUnstorable(t *testing.T) {
	late := kit.Chat{Session: sessionA}
	for name, lines := range map[string]string{
		"a tool id as long as a file": late.Assistant(map[string]any{"type": "tool_use", "id": strings.Repeat("t", 40_000), "name": "mcp__ccship__link_document", "input": map[string]any{"path": "a"}}) +
			late.Result(strings.Repeat("t", 40_000), `{"action":"link","path":"a"}`),
		"a compaction in another age": late.Record(map[string]any{"type": "system", "subtype": "compact_boundary", "timestamp": 9e15,
			"compactMetadata": map[string]any{"trigger": "auto", "preTokens": 160000}}),
		"a compaction in the year 10000": late.Record(map[string]any{"type": "system", "subtype": "compact_boundary", "timestamp": "9999-12-31T23:59:59-05:00",
			"compactMetadata": map[string]any{"trigger": "auto", "preTokens": 160000}}),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.deliver()
			other := kit.Chat{Session: sessionB}
			w.write(transcriptOf(sessionA), lines)
			w.write(transcriptOf(sessionB), other.Prompt("one")+other.Compaction())
			r := w.sync()
			kit.Check(t, r.Done, "%+v", r)
		})
	}
}

// What was forgotten is not understood again: not when the daemon starts, and not when it is asked for or written.
func TestForgottenIsNotUnderstood(t *testing.T) {
	w := newWorld(t)
	a := kit.Chat{Session: sessionA}
	w.deliver()
	w.send(transcriptOf(sessionA), a.Prompt("one")+a.Compaction())
	w.must(w.client.Forget(t.Context(), control.ForgetRequest{Session: sessionA}))
	nothing := func(when string) {
		t.Helper()
		w.sync()
		list, err := w.client.Checkpoints(t.Context(), control.CheckpointsQuery{})
		kit.Check(t, err == nil && len(list.Checkpoints) == 0, "%s: %+v %v", when, list, err)
		m, err := w.client.Messages(t.Context(), control.MessagesQuery{Session: sessionA})
		kit.Check(t, err != nil, "%s: messages %q", when, said(m))
		w.stop()
		projections := openTestState(t, w)
		db := projections.State
		for id := range loadFacts(t, db) {
			u, found, err := projections.Sessions.Projection(t.Context(), id)
			kit.Check(t, err == nil && !found, "%s: understood up to %v, %v", when, u.Place, err)
		}
		kit.Must(t, db.Close())
	}
	nothing("forgotten")
	w.start()
	nothing("after a restart")
	w.start()
	w.write(transcriptOf(sessionA), a.Prompt("two")+a.Compaction())
	nothing("written again")
}

// startInside starts the daemon as start does, and returns it.
func (w *world) startInside() *Daemon {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	d := kit.Try(open(ctx, w.cfg)).Must(w.t)
	ln := kit.Try(control.Listen(w.cfg.Socket)).Must(w.t)
	ended := make(chan error, 1)
	go func() { ended <- d.serve(ctx, ln) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		kit.Should(w.t, errors.Join(<-ended, d.db.Close()))
	})
	w.t.Cleanup(w.stop)
	w.client = control.Dial(w.cfg.Socket)
	w.client.Patient = true
	return d
}

// A sync that waits, waits until what is scheduled is folded: its rows are to be counted.
func TestSyncWaitsForFolding(t *testing.T) {
	w := newWorld(t)
	a, b := kit.Chat{Session: sessionA}, kit.Chat{Session: sessionB}
	w.write(transcriptOf(sessionA), a.Prompt("one"))
	d := w.startInside()
	w.sync()
	s := kit.Try(d.router.Lookup(sessionA, d.tailer)).Must(t)
	gate, looking, answered := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		answered <- d.derive.Query(context.Background(), s.ID, func(*derive.FoldStep) error { close(looking); <-gate; return nil })
	}()
	<-looking // nothing is folded until the gate opens
	w.write(transcriptOf(sessionB), b.Prompt("one")+b.Compaction())
	r, err := w.client.Sync(context.Background(), control.SyncRequest{Wait: true, Timeout: "500ms"})
	kit.Check(t, err == nil && !r.Done && r.Reason == proof.ReasonTimeout, "while nothing is folded: %+v %v", r, err)
	close(gate)
	kit.Must(t, <-answered)
	r = w.sync()
	kit.Check(t, r.Done, "%+v", r)
	kit.Equal(t, "checkpoints", w.triggers(sessionB), "compact@160000")
}

// Delivering everything to another server is not news: no one is shown again what was shown.
func TestAnotherServerIsNotNews(t *testing.T) {
	w := newFileWorld(t)
	a := kit.Chat{Session: sessionA}
	w.watching()
	w.send(transcriptOf(sessionA), a.Turn(20_000)+a.Turn(139_000))
	w.allPending(sessionA, 1)
	other := httptest.NewServer(newMemServer())
	defer other.Close()
	w.set("server_url", strconv.Quote(other.URL))
	w.must(w.client.Reload(context.Background()))
	w.sync()
	p := w.handed(sessionA)
	kit.Check(t, p.Notices == 0, "delivered again: %q", p.Text)
	w.send(transcriptOf(sessionA), a.Turn(152_000))
	kit.Equal(t, "checkpoints", w.triggers(sessionA), "auto_80@139000 auto_90@152000")
	w.allPending(sessionA, 1)
}

const (
	sessionC = "0c0c0c0c-0000-4000-8000-000000000003"
	sessionD = "0d0d0d0d-0000-4000-8000-000000000004"
)

// silent says that nothing passed a part of a session's budget, and that no one is notified.
func (w *world) silent(session string) {
	w.t.Helper()
	kit.Equal(w.t, session, w.triggers(session), "")
	p := w.handed(session)
	kit.Check(w.t, p.Notices == 0, "%s is told %q", session, p.Text)
}

// A copy of a transcript is no news, whatever was made from its ids. What is written behind the copy is.
func TestCopiedTranscriptIsHistory(t *testing.T) {
	for name, copied := range map[string]func(lines string) string{
		"as it was":          func(lines string) string { return lines },
		"under a new id":     func(lines string) string { return strings.ReplaceAll(lines, sessionA, sessionB) },
		"from its middle on": func(lines string) string { return strings.ReplaceAll(lines[len(lines)*2/3:], sessionA, sessionB) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := kit.Chat{Session: sessionA}
			old := a.Turn(20_000)
			for range 400 { // beyond what is looked at of the beginning
				old += a.Prompt(strings.Repeat("word ", 100))
			}
			w.write(transcriptOf(sessionA), old)
			w.watching()
			fresh := a.Turn(30_000) + a.Turn(139_000)
			w.send(transcriptOf(sessionA), fresh)
			got := w.triggers(sessionA)
			kit.Require(t, got == "auto_80@139000", "the original has %q", got)
			text := copied(old + fresh)
			text = text[strings.Index(text, `{"`):]
			w.send(transcriptOf(sessionB), text)
			w.silent(sessionB)
			b := kit.Chat{Session: sessionB, Leaf: a.Leaf, N: a.N}
			w.send(transcriptOf(sessionB), b.Turn(140_000))
			w.silent(sessionB)
			w.send(transcriptOf(sessionB), b.Turn(152_000))
			kit.Equal(t, "what goes on has", w.triggers(sessionB), "auto_90@152000")
			w.allPending(sessionB, 1)
		})
	}
}

// A copy may be of the middle of another transcript: of what follows a compaction, up to an earlier answer.
func TestCopyOfAMiddle(t *testing.T) {
	w := newWorld(t)
	a := kit.Chat{Session: sessionA}
	var long [2]string
	for i := range long {
		for range 500 {
			long[i] += a.Prompt(strings.Repeat("word ", 100))
		}
		if i == 0 {
			a.Leaf = ""
			long[i] += a.Compaction()
		}
	}
	middle := a.Turn(139_000)
	w.write(transcriptOf(sessionA), long[0]+middle+long[1])
	w.watching()
	w.send(transcriptOf(sessionB), strings.ReplaceAll(middle, sessionA, sessionB))
	w.silent(sessionB)
}

// A copy that arrives piece by piece is one to its end.
func TestCopiedInPieces(t *testing.T) {
	w := watchingWorld(t)
	a := kit.Chat{Session: sessionA}
	var lines []string
	for _, tokens := range []int64{20_000, 40_000, 139_000, 152_000} {
		lines = append(lines, a.Turn(tokens))
		w.send(transcriptOf(sessionA), lines[len(lines)-1])
	}
	prompt, answer, _ := strings.Cut(lines[0], "\n")
	for _, text := range append([]string{prompt + "\n", answer}, lines[1:]...) {
		w.send(transcriptOf(sessionB), strings.ReplaceAll(text, sessionA, sessionB))
	}
	w.silent(sessionB)
	b := kit.Chat{Session: sessionB, Leaf: a.Leaf, N: a.N}
	w.send(transcriptOf(sessionB), b.Compaction()+b.Turn(140_000))
	kit.Equal(t, "what goes on has", w.triggers(sessionB), "compact@160000 auto_80@140000")
}

// What lies in a file that was written long before it came is history.
func TestOldFileMovedIn(t *testing.T) {
	w := watchingWorld(t)
	a := kit.Chat{Session: sessionA}
	path := filepath.Join(t.TempDir(), "old")
	kit.Must(t, os.WriteFile(path, []byte(a.Turn(139_000)), 0o600))
	old := time.Now().Add(-time.Hour)
	kit.Must(t, os.Chtimes(path, old, old))
	kit.Must(t, os.MkdirAll(filepath.Join(w.root, "-home-kim-shop"), 0o700))
	kit.Must(t, os.Rename(path, filepath.Join(w.root, transcriptOf(sessionA))))
	w.sync()
	w.silent(sessionA)
	w.send(transcriptOf(sessionA), a.Turn(152_000))
	kit.Equal(t, "what goes on has", w.triggers(sessionA), "auto_90@152000")
}

// Another session's lines in a transcript are not watched; a file that is not named after a session has no others.
func TestLinesOfAnotherSession(t *testing.T) {
	w := watchingWorld(t)
	c, d := kit.Chat{Session: sessionC}, kit.Chat{Session: sessionD}
	w.send(transcriptOf(sessionC), c.Turn(20_000))
	w.send(transcriptOf(sessionC), d.Turn(152_000))
	w.silent(sessionC)
	w.send("-home-kim-shop/weird name.jsonl", d.Turn(139_000))
	kit.Equal(t, "a file with a name of its own has", w.triggers("weird name"), "auto_80@139000")
}

// Sessions that are new next to others fire, also when all of their first lines are there at once.
func TestNewSessionsAreNoCopies(t *testing.T) {
	w := watchingWorld(t)
	for _, session := range []string{sessionA, sessionB, sessionC} {
		c := kit.Chat{Session: session}
		w.send(transcriptOf(session), c.Turn(20_000)+c.Turn(139_000))
		w.send(transcriptOf(session), c.Turn(152_000))
		kit.Equal(t, session, w.triggers(session), "auto_80@139000 auto_90@152000")
	}
}
