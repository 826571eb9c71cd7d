package outbox

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

// TestLedgerHeaders: what goes over the wire, and which answer is news.
func TestLedgerHeaders(t *testing.T) {
	h := http.Header{}
	(&protocol.Writer{Incarnation: "i"}).Set(h)
	kit.Equal(t, "before the first answer", h.Get(protocol.HeaderWriter), "i 0")
	(&protocol.Writer{Incarnation: "i", Known: protocol.Ledger{Store: "s", Count: 7, Token: "t", Writer: "h"}}).Set(h)
	kit.Equal(t, "writer", h.Get(protocol.HeaderWriter), "i 7 s t")
	for text, want := range map[string]protocol.Ledger{
		"s 7 t": {Store: "s", Count: 7, Token: "t"}, "s 7": {Store: "s", Count: 7}, "": {}, "s": {}, "s x": {}, " 7": {}, "s -1": {},
	} {
		h.Set(protocol.HeaderLedger, text)
		kit.Equal(t, text, protocol.LedgerOf(h), want)
	}
	known := protocol.Ledger{Store: "s", Count: 7, Writer: "i"}
	for at, news := range map[protocol.Ledger]bool{{}: false, {Store: "s", Count: 7}: false, {Store: "s", Count: 6}: false, {Store: "s", Count: 8}: true, {Store: "t", Count: 1}: true} {
		if at.After(&known) != news {
			t.Errorf("%+v is news: %v", at, !news)
		}
	}
}

// ledgered answers with a ledger that counts, and refuses with code while it is set.
func ledgered(r *rig, store string, count *atomic.Int64, refuse func(*seen) string) {
	r.set(func(q *seen) *canned {
		if code := refuse(q); code != "" {
			return &canned{status: http.StatusConflict, body: fmt.Sprintf(`{"error":{"code":%q,"message":"compare first"}}`, code),
				header: map[string]string{protocol.HeaderLedger: fmt.Sprintf("%s %d", store, count.Load())}}
		}
		return &canned{status: http.StatusOK, store: true, body: fmt.Sprintf(`{"success":true,"entries_stored":%d}`, len(q.entries)),
			header: map[string]string{protocol.HeaderLedger: fmt.Sprintf("%s %d", store, count.Add(1)), protocol.HeaderServer: "1.2"}}
	})
}

// TestLedgerIsKept: the drainer sends what it knows, learns from each answer, and keeps it for the next run.
func TestLedgerIsKept(t *testing.T) {
	r := newRig(t)
	r.drainer.origin.Incarnation = "run-1"
	var count atomic.Int64
	ledgered(r, "s1", &count, func(*seen) string { return "" })
	r.start()
	for line := range 3 {
		r.add(conversation(1), rowsOf(line, line+1, 1)...)
		r.drained()
	}
	r.stop()
	got, want := r.queue.learned.Ledger, (protocol.Ledger{Store: "s1", Count: 3, Version: "1.2", Writer: "run-1"})
	kit.Check(t, got == want, "kept %+v, want %+v", got, want)
	for i, want := range []string{"run-1 0", "run-1 1 s1", "run-1 2 s1"} {
		kit.Equal(t, fmt.Sprintf("request %d: writer", i), r.posts[i].header.Get(protocol.HeaderWriter), want)
	}
}

// TestOutOfStep: after a refusal by the ledger nothing is sent until both sides were compared; the queue as it is then
// goes out, with the ledger that the comparison saw.
func TestOutOfStep(t *testing.T) {
	r := newRig(t)
	r.drainer.origin.Incarnation = "run-2"
	r.queue.learned.Ledger = protocol.Ledger{Store: "s1", Count: 9, Writer: "run-1"}
	took(r)
	var count atomic.Int64
	count.Store(4)
	var behind atomic.Bool
	behind.Store(true)
	ledgered(r, "s1", &count, func(*seen) string { return kit.If(behind.Load(), protocol.CodeStoreBehind, "") })
	refusals := make(chan protocol.Refusal, 10)
	r.owner.outOfStep = func(why protocol.Refusal) { refusals <- why }
	r.queue.learned.Ledger = protocol.Ledger{Store: "s1", Count: 9, Writer: "run-1"}
	r.backlog(6, 0, 5, 5)
	r.start()
	kit.Equal(t, "refusal", <-refusals, protocol.Refusal{Code: protocol.CodeStoreBehind, Store: "s1"})
	r.troubled(StateRetrying, KindOutOfStep)
	asked := r.count()
	r.drainer.Retry(false)
	r.drainer.Wake()
	behind.Store(false)
	r.drainer.InStep(protocol.Ledger{Store: "s1", Count: 4}, "")
	r.drained()
	kit.Check(t, asked <= 4, "%d requests before the comparison: only those in flight may be refused", asked)
	if len(refusals) > 0 {
		t.Errorf("asked to compare again: %+v", <-refusals)
	}
	before, after := 0, 0
	for _, q := range r.posts {
		if q.header.Get(protocol.HeaderWriter) == "run-2 9 s1" {
			before++
		} else {
			after++
		}
	}
	kit.Check(t, before <= 6 && after != 0, "%d requests with the ledger of before, %d with that of the comparison",
		before, after)
}

// TestStreamOutOfStep: a refusal of one stream holds up no other.
func TestStreamOutOfStep(t *testing.T) {
	r := newRig(t)
	r.drainer.origin.Incarnation = "run"
	took(r)
	var count atomic.Int64
	var repaired atomic.Bool
	ledgered(r, "s1", &count, func(q *seen) string {
		return kit.If(q.session == "session-1" && !repaired.Load(), protocol.CodeOtherBytes, "")
	})
	refusals := make(chan protocol.Refusal, 10)
	r.owner.outOfStep = func(why protocol.Refusal) { refusals <- why }
	r.start()
	r.add(conversation(1), rowsOf(0, 5, 5)...)
	why := <-refusals
	kit.Check(t, why.Stream == 1 && why.Code == protocol.CodeOtherBytes, "refusal %+v", why)
	r.add(conversation(2), rowsOf(0, 5, 5)...)
	r.until("the other stream is sent", func() bool { return r.queue.waiting() == 1 })
	repaired.Store(true)
	r.drainer.StreamInStep(1)
	r.drained()
	r.holds("session-1", numbers(0, 5)...)
}

// TestStepBack: notified that the server stores something else, an idle drainer sends nothing until both were compared.
func TestStepBack(t *testing.T) {
	r := newRig(t)
	r.drainer.origin.Incarnation = "run-2"
	was := protocol.Ledger{Store: "s1", Count: 9, Writer: "run-1"}
	r.queue.learned.Ledger = was
	took(r)
	r.queue.learned.Ledger = was
	var count atomic.Int64
	count.Store(4)
	ledgered(r, "s1", &count, func(*seen) string { return "" })
	refusals := make(chan protocol.Refusal, 10)
	r.owner.outOfStep = func(why protocol.Refusal) { refusals <- why }
	known, me, err := r.drainer.Ledger(t.Context())
	kit.Check(t, known == was && me == "run-2" && err == nil, "before it runs: %+v, %q, %v", known, me, err)
	r.start()
	kit.Check(t, !r.drainer.StepBack(protocol.CodeStoreBehind, "run-1"),
		"stepped back for an incarnation that does not write")
	kit.Check(t, r.drainer.StepBack(protocol.CodeStoreBehind, "run-2"), "not stepped back")
	why := <-refusals
	kit.Check(t, why.Code == protocol.CodeStoreBehind && why.Stream == 0, "refusal %+v", why)
	r.troubled(StateRetrying, KindOutOfStep)
	asked := r.count()
	r.add(conversation(1), rowsOf(0, 5, 5)...)
	r.drainer.Retry(false)
	now := protocol.Ledger{Store: "s1", Count: 4, Writer: "run-0"}
	r.drainer.InStep(now, "")
	known, me, err = r.drainer.Ledger(t.Context())
	kit.Check(t, known == now && me == "run-2" && err == nil, "in step: %+v, %q, %v", known, me, err)
	r.drained()
	kit.Equal(t, "the first request after it: writer", r.posts[asked].header.Get(protocol.HeaderWriter), "run-2 4 s1")
}

// TestComparedWhenQuiet: the comparison begins when the requests in flight are answered and what they delivered has
// left the queue. Another store may have acknowledged it, and a comparison that takes it for queued would miss that.
func TestComparedWhenQuiet(t *testing.T) {
	r := newRig(t)
	r.drainer.origin.Incarnation = "run"
	took(r)
	r.queue.learned.Ledger = protocol.Ledger{Store: "s1", Count: 1, Writer: "run"}
	var count atomic.Int64
	ledgered(r, "s1", &count, func(q *seen) string { return kit.If(q.session == "session-2", protocol.CodeOtherStore, "") })
	answer, held := make(chan struct{}), make(chan struct{})
	r.hold = func(q *seen) {
		if q.session == "session-1" {
			close(held)
			<-answer
		}
	}
	refused := make(chan int, 10)
	r.owner.outOfStep = func(protocol.Refusal) { refused <- r.queue.queued(1) }
	r.queue.add(conversation(1), rowsOf(0, 5, 5)...)
	r.start()
	receive(t, held)
	r.add(conversation(2), rowsOf(0, 5, 5)...)
	r.troubled(StateRetrying, KindOutOfStep)
	kit.Check(t, len(refused) <= 0, "compared while a request is in flight")
	close(answer)
	n := receive(t, refused)
	kit.Check(t, n <= 0, "%d batches in the queue were acknowledged before", n)
}

// TestCountSeenBefore: a database that was exchanged for an older copy takes a request that was in flight, and counts
// it with a number that the one before gave to another request. That is no acknowledgement.
func TestCountSeenBefore(t *testing.T) {
	r := newRig(t)
	r.drainer.origin.Incarnation = "run-1"
	var count atomic.Int64
	ledgered(r, "s1", &count, func(*seen) string { return "" })
	refusals := make(chan protocol.Refusal, 10)
	r.owner.outOfStep = func(why protocol.Refusal) { refusals <- why }
	r.start()
	r.add(conversation(1), rowsOf(0, 1, 1)...)
	r.drained()
	count.Store(0)
	r.add(conversation(2), rowsOf(0, 1, 1)...)
	kit.Equal(t, "refusal", <-refusals, protocol.Refusal{Code: protocol.CodeStoreBehind, Store: "s1"})
	kit.Equal(t, "batches wait for the comparison", r.queue.queued(2), 1)
	r.drainer.InStep(protocol.Ledger{Store: "s1", Count: 1}, "")
	r.drained()
	if len(refusals) > 0 {
		t.Errorf("asked to compare again: %+v", <-refusals)
	}
}

// TestDoubtIsKept: that a count came again is durable with the acknowledgements before it, and a drainer that starts
// with it sends nothing before the comparison.
func TestDoubtIsKept(t *testing.T) {
	r := newRig(t)
	r.drainer.origin.Incarnation = "run-1"
	r.drainer.ackDelay = time.Hour
	took(r)
	var count atomic.Int64
	ledgered(r, "s1", &count, func(*seen) string { return "" })
	answer, held := make(chan struct{}), make(chan struct{}, 9)
	release := sync.OnceFunc(func() { close(answer) })
	defer release()
	r.hold = func(q *seen) {
		if q.session == "session-3" { // so that acknowledgements wait for company
			held <- struct{}{}
			<-answer
		}
	}
	r.start()
	r.add(conversation(4), rowsOf(0, 1, 1)...)
	r.drained() // with it what the server announces
	r.add(conversation(3), rowsOf(0, 1, 1)...)
	receive(t, held)
	r.add(conversation(1), rowsOf(0, 1, 1)...)
	r.until("the first write is counted", func() bool { return r.drainer.Health().Requests == 2 })
	count.Store(1)
	r.add(conversation(2), rowsOf(0, 1, 1)...)
	r.until("the first write is settled", func() bool { return r.queue.queued(1) == 0 })
	r.queue.mu.Lock()
	s := r.queue.settled[1]
	kit.Check(t, s.Stream == 1 && s.Ledger.Doubt, "settled %+v", s)
	r.queue.mu.Unlock()
	release()
	r.stop()
	kit.Check(t, r.queue.remembered().Ledger.Doubt, "the doubt is not kept")

	asked := r.count()
	refusals := make(chan protocol.Refusal, 10)
	r.owner.outOfStep = func(why protocol.Refusal) { refusals <- why }
	r.drainer = NewDrainer(r.drainer.dest, r.drainer.origin, r.queue, r.queue, r.owner)
	r.start()
	why := receive(t, refusals)
	kit.Check(t, why.Code == protocol.CodeStoreBehind && why.Stream == 0, "refusal %+v", why)
	n := r.count() - asked
	kit.Check(t, n <= 0, "%d requests before the comparison", n)
	r.drainer.InStep(protocol.Ledger{Store: "s1", Count: 1}, "")
	r.drained()
	r.until("the doubt is over", func() bool { return !r.queue.remembered().Ledger.Doubt })
	if len(refusals) > 0 {
		t.Errorf("asked to compare again: %+v", <-refusals)
	}
}
