package derive

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/session"
)

// firstEvent is an observer that notes how many lines were folded when one session's first line was.
type firstEvent struct {
	deriver *Deriver
	session string
	at      atomic.Int64
}

func (*firstEvent) Begin(*FoldStep)     {}
func (*firstEvent) End(*FoldStep) error { return nil }
func (n *firstEvent) Event(s *FoldStep, _ *session.Event, _ bool) {
	if s.Facts.Stream.SessionID == n.session {
		n.at.CompareAndSwap(0, n.deriver.foldedLines.Load()+1)
	}
}

// A query is answered, and a session that is written is folded, while a huge one is being folded.
func TestHugeFileDelaysNobody(t *testing.T) {
	h := newHarness(t)
	huge, small, live := chat{Session: sessionA}, chat{Session: sessionB}, chat{Session: sessionC}
	line := huge.Answer(strings.Repeat("lorem ipsum ", sliceSize/100)) // copies, but they have to be read
	h.delivered(map[string]string{sessionA: strings.Repeat(line, 100), sessionB: small.Prompt("quick"), sessionC: live.Prompt("now")})
	first := &firstEvent{session: sessionC}
	d := h.alone(first)
	first.deriver = d
	d.schedule.add(h.id(sessionC), false)
	answered := make(chan error, 2)
	folded := map[string]int64{} // lines when the query was answered
	for n, session := range []string{sessionA, sessionB} {
		id := h.id(session)
		go func() {
			answered <- d.Query(t.Context(), id, func(*FoldStep) error { folded[session] = d.foldedLines.Load(); return nil })
		}()
		h.until("the query waits", func() bool { d.queries.mu.Lock(); defer d.queries.mu.Unlock(); return len(d.queries.list) > n })
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	for range 2 {
		kit.Must(t, <-answered)
	}
	cancel()
	kit.Must(t, <-ended)
	if at := first.at.Load(); folded[sessionA] < 101 || folded[sessionB] > 20 || at == 0 || at > 20 {
		t.Errorf("of 102 lines so many were folded when queries were answered: %v; the live session after %d", folded, at)
	}
}

// A file that does not hold what was delivered of it is not folded until the tailer notices the rewrite.
func TestRewrittenBeforeFolding(t *testing.T) {
	h := newHarness(t)
	c, other := chat{Session: sessionA}, chat{Session: sessionA}
	text := c.Prompt("one") + c.Answer("two")
	h.delivered(map[string]string{sessionA: text})
	d, id := h.alone(), h.id(sessionA)
	refused := func(how string) {
		t.Helper()
		kit.Err(t, how, errRewritten)(d.advance(t.Context(), id))
	}
	h.rewrite(sessionA, other.Prompt("ONE")+other.Answer("TWO"))
	refused("rewritten")
	h.rewrite(sessionA, strings.Repeat("x", 2*len(text)))
	refused("rewritten as one line without an end")
	kit.Must(t, os.Truncate(h.path(sessionA), 10))
	refused("truncated")
	kit.Equal(t, "lines of it were folded", d.foldedLines.Load(), 0)
}

// putFold stores a projection as another daemon left it.
func (h *harness) putFold(id tail.FileID, prev projection.Place, u *projection.Projection) {
	h.t.Helper()
	errs, err := h.projections.Commit(h.t.Context(), []projection.Derivation{{File: id, Prev: prev, Projection: u}})
	kit.Require(h.t, err == nil && errs[0] == nil, "%v %v", errs, err)
}

// olderFold makes the stored projection of a session one of another version.
func (h *harness) olderFold(id tail.FileID) projection.Place {
	h.t.Helper()
	u, _, err := h.projections.Sessions.Projection(h.t.Context(), id)
	kit.Require(h.t, err == nil && len(u.Fold) != 0 && u.Fold[0] == foldVersion, "%+v %v", u, err)
	u.Fold[0]++
	h.putFold(id, u.Place, &u)
	return u.Place
}

// A projection of another version is made again, and lines that had effects have none again.
func TestOlderFold(t *testing.T) {
	h, r := newHarness(t), &recorder{}
	a := chat{Session: sessionA}
	h.startAndSync(r)
	h.send(sessionA, a.Prompt("one"))
	h.stop()
	r.take()
	h.open()
	h.olderFold(h.id(sessionA))
	h.stop()
	h.startAndSync(r)
	h.send(sessionA, a.Prompt("two"))
	h.expect(r, "with a fold of another version", "one", "two!")
}

// A projection that is made again and is interrupted does not give lines their effects twice.
func TestRefoldInterrupted(t *testing.T) {
	h, r := newHarness(t), &recorder{}
	a := chat{Session: sessionA}
	h.startAndSync(r)
	h.send(sessionA, a.Prompt("one")+a.Result("none", strings.Repeat("o", sliceSize))+a.Prompt("two"))
	h.stop()
	h.expect(r, "as written", "one!", "two!")
	h.open()
	id := h.id(sessionA)
	before := h.olderFold(id)
	p, more, err := h.alone().advance(t.Context(), id)
	kit.Require(t, err == nil && more, "%v %v", more, err)
	d := p.takeEffects()
	kit.Require(t, d.Projection.Place.Line == 1 && d.Prev == before, "%+v", d.Projection.Place)
	h.putFold(id, d.Prev, d.Projection) // and is killed
	h.stop()
	h.startAndSync(r)
	h.expect(r, "the rest", "two")
	h.send(sessionA, a.Prompt("three"))
	h.expect(r, "new lines", "three!")
}

// A query whose caller has left does not write to the caller's variables any more.
func TestQueryIsLeft(t *testing.T) {
	h := newHarness(t)
	a := chat{Session: sessionA}
	h.write(sessionA, a.Prompt("one"))
	h.start()
	h.sync()
	id := h.id(sessionA)
	ctx, cancel := context.WithCancel(t.Context())
	answer := 0
	err := h.deriver.Query(ctx, id, func(*FoldStep) error {
		cancel()
		for range 1000 {
			answer++
		}
		return nil
	})
	kit.Check(t, answer == 1000, "%d written when Query returned %v", answer, err)
	err = h.deriver.Query(ctx, id, func(*FoldStep) error { answer = 0; return nil })
	kit.Check(t, errors.Is(err, context.Canceled), "%v", err)
	err = h.deriver.Query(t.Context(), id, func(*FoldStep) error { return nil })
	kit.Check(t, err == nil && answer == 1000, "%v %v %v", "called for nobody: ", answer, err)
}
