package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/session"
)

// An import folds nothing, but for what has a compaction in it; a question folds what it asks for, once; what is
// written while the daemon watches is folded as it comes.
func TestFoldsOnlyForAReason(t *testing.T) {
	w := newWorld(t)
	history, compacted := chat{session: sessionA}, chat{session: sessionB}
	w.write(transcriptOf(sessionA), history.prompt("one")+history.answer("two"))
	w.start()
	w.sync()
	if n := w.figure("understood_lines_total"); n != 0 {
		t.Fatalf("the import of %d lines folded %d", 2, n)
	}
	w.stop()
	w.write(transcriptOf(sessionB), compacted.prompt("one")+compacted.compaction()+compacted.answer("two"))
	w.start()
	w.sync()
	if n := w.figure("understood_lines_total"); n != 3 {
		t.Fatalf("the import with a compaction folded %d lines, want its 3", n)
	}
	for range 3 {
		if got := said(w.messages(sessionA)); len(got) != 2 {
			t.Fatalf("messages %q", got)
		}
	}
	if n := w.figure("understood_lines_total"); n != 5 {
		t.Errorf("a question asked three times folded %d lines, want 2", n-3)
	}
	w.write(transcriptOf(sessionA), history.prompt("three"))
	w.sync()
	if n := w.figure("understood_lines_total"); n != 6 {
		t.Errorf("one line written folded %d", n-5)
	}
	w.stop()
	w.start()
	w.sync()
	if n := w.figure("understood_lines_total"); n != 0 {
		t.Errorf("a restart folded %d lines", n)
	}
}

// A thousand messages later the memory is where it was.
func TestMemoryIsBounded(t *testing.T) {
	w := newWorld(t)
	c := chat{session: sessionA}
	w.start()
	grow := func(turns int) uint64 {
		var text strings.Builder
		for i := range turns {
			id := fmt.Sprintf("toolu_%d_%d", c.n, i)
			text.WriteString(c.prompt("prompt "+id) + c.call(id, "ls") + c.result(id, strings.Repeat("o", 2000)) + c.answer(strings.Repeat("a", 500)))
		}
		w.write(transcriptOf(sessionA), text.String())
		w.sync()
		w.messages(sessionA)
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := grow(500)
	after := grow(2000)
	// The test's own server keeps what it gets, about 3.6 KB a turn.
	if grown := int64(after) - int64(before) - 2000*5<<10; grown > 2<<20 {
		t.Errorf("%d KiB, then %d KiB", before>>10, after>>10)
	}
	t.Logf("%d KiB after 500 turns, %d KiB after 2 500", before>>10, after>>10)
}

// noted is an observer that notes how many lines were folded when one session's first line was.
type noted struct {
	deriver *deriver
	session string
	at      atomic.Int64
}

func (n *noted) begin(*pass)     {}
func (n *noted) end(*pass) error { return nil }
func (n *noted) event(p *pass, _ *session.Event, _ bool) {
	if p.facts.Stream.SessionID == n.session {
		n.at.CompareAndSwap(0, n.deriver.folded.Load()+1)
	}
}

// A session that is asked for is answered, and one that is written is followed, while a huge one is being folded.
func TestHugeFileHoldsNobodyUp(t *testing.T) {
	w := newWorld(t)
	huge, small, live := chat{session: sessionA}, chat{session: sessionB}, chat{session: sessionC}
	line := huge.answer(strings.Repeat("lorem ipsum ", sliceBytes/100)) // copies, but they have to be read
	w.write(transcriptOf(sessionA), strings.Repeat(line, 100))
	w.write(transcriptOf(sessionB), small.prompt("quick"))
	w.write(transcriptOf(sessionC), live.prompt("now"))
	w.start()
	w.sync()
	w.stop()
	db := openTestState(t, w)
	v := newDeriver(db, w.cfg.Log)
	v.where, v.lineCap = whereNothing, w.cfg.LineCap
	ids := map[string]tail.FileID{}
	for id, f := range loadFacts(t, db) {
		ids[f.Stream.SessionID] = id
	}
	followed := &noted{deriver: v, session: sessionC}
	v.observers = append(v.observers, followed)
	v.wanted[ids[sessionC]] = struct{}{}
	answered := make(chan error, 2)
	folded := map[string]int64{} // when it was answered
	for n, session := range []string{sessionA, sessionB} {
		go func() {
			answered <- v.visit(t.Context(), ids[session], func(*pass) error { folded[session] = v.folded.Load(); return nil })
		}()
		w.until("it is asked for", func() bool { v.mu.Lock(); defer v.mu.Unlock(); return len(v.asks) > n })
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- v.run(ctx) }()
	for range 2 {
		if err := <-answered; err != nil {
			t.Error(err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if at := followed.at.Load(); folded[sessionA] < 101 || folded[sessionB] > 20 || at == 0 || at > 20 {
		t.Errorf("of 102 lines so many were folded when they were answered: %v; followed after %d", folded, at)
	}
}

// A file that is not what was delivered of it is not believed: nothing of it is folded until the rewrite is noticed.
func TestRewrittenUnderTheDeriver(t *testing.T) {
	w := newWorld(t)
	c := chat{session: sessionA}
	path := w.write(transcriptOf(sessionA), c.prompt("one")+c.answer("two"))
	w.start()
	w.sync()
	w.stop()
	db := openTestState(t, w)
	v := newDeriver(db, w.cfg.Log)
	v.where, v.lineCap = whereNothing, w.cfg.LineCap
	other := chat{session: sessionA}
	w.rewrite(transcriptOf(sessionA), other.prompt("ONE")+other.answer("TWO"))
	for id := range loadFacts(t, db) {
		if _, _, err := v.advance(t.Context(), id); !errors.Is(err, errRewritten) {
			t.Errorf("rewritten: %v", err)
		}
	}
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	for id := range loadFacts(t, db) {
		if _, _, err := v.advance(t.Context(), id); !errors.Is(err, errRewritten) {
			t.Errorf("cut short: %v", err)
		}
	}
	if n := v.folded.Load(); n != 0 {
		t.Errorf("%d lines of it were folded", n)
	}
}

// A line longer than the cap is stepped over, one longer than a slice is not.
func TestLongLines(t *testing.T) {
	w := newWorld(t)
	w.cfg.LineCap = 3 << 20
	c := chat{session: sessionA}
	w.write(transcriptOf(sessionA), c.prompt("one")+c.answer(strings.Repeat("x", 2<<20))+c.answer(strings.Repeat("y", 8<<20))+c.answer("end"))
	w.start()
	w.sync()
	m := w.messages(sessionA)
	if m.Total != 3 || m.Messages[2].Content != "end" || m.Messages[2].Line != 3 || !strings.HasPrefix(m.Messages[1].Content, "xx") {
		t.Errorf("%d messages, %q…", m.Total, said(m)[m.Total-1][:20])
	}
}
