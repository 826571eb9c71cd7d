package outbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

// mixed is a conversation with everything that a plain server may not get.
func mixed() []Batch {
	opaque := batchOf(Opaque, 2, `{"line_index":2,"type":"ccship.opaque","encoding":"base64","data":"AAA="}`)
	marker := Batch{Kind: Marker, From: protocol.Position{Offset: 100, Line: 5}, To: protocol.Position{Offset: 100, Line: 5}, RewoundTo: 5}
	return []Batch{rowsOf(0, 2, 2)[0], opaque, rowsOf(3, 5, 2)[0], marker}
}

func history() Stream {
	s := conversation(9)
	s.Extended = true
	return s
}

// TestPlainCount: a plain server may count otherwise, such as the rows that an upsert touched. It has acknowledged.
func TestPlainCount(t *testing.T) {
	for _, stored := range []int{0, 3, 6} {
		r := newRig(t)
		r.announce = false
		r.set(func(*seen) *canned {
			return &canned{status: 200, store: true, body: fmt.Sprintf(`{"success":true,"entries_stored":%d}`, stored)}
		})
		r.queue.add(conversation(1), rowsOf(0, 3, 3)...)
		r.drain()
		r.holds("session-1", 0, 1, 2)
	}
}

// TestPlainServer gets JSON objects and nothing else; the rest is withheld and counted.
func TestPlainServer(t *testing.T) {
	for _, configured := range []bool{false, true} {
		r := newRig(t)
		r.announce = configured // to one configured as plain it does not matter what it announces
		r.drainer.dest.Plain = configured
		r.queue.add(history(), rowsOf(0, 3, 3)...)
		r.queue.add(conversation(1), mixed()...)
		r.drain()
		r.holds("session-1", 0, 1, 3, 4)
		r.holds("session-9")
		sum := r.queue.total()
		kit.Check(t, sum.Withheld == 4 && sum.Entries == 4 && sum.Plain, "withheld %d, acknowledged %d, plain %t",
			sum.Withheld, sum.Entries, sum.Plain)
		r.until("it is counted", func() bool {
			h := r.drainer.Health()
			return h.Protocol == "plain" && h.Withheld == 4
		})
		for _, q := range r.all() {
			for name := range q.header {
				kit.Check(t, slices.Contains([]string{"Accept-Encoding", "Content-Type", "Content-Length", "X-Api-Key"}, name),
					"header %s", name)
			}
			kit.Check(t, q.ccship == nil, "extension %v", q.ccship)
		}
		r.until("it is remembered", func() bool {
			l := r.queue.remembered()
			return l.Took && !l.Extension
		})
	}
}

// TestExtensionServer gets everything, compressed from the second request on.
func TestExtensionServer(t *testing.T) {
	for _, codings := range []string{"zstd, gzip", "zstd;q=0, gzip;q=0.5", ""} {
		t.Run(codings, func(t *testing.T) {
			r := newRig(t)
			r.codings = codings
			r.queue.add(conversation(1), mixed()...)
			r.queue.add(history(), rowsOf(0, 3, 3)...)
			r.drain()
			got := r.stored("session-1")
			kit.Check(t, len(got) == 5 && got[2] != "", "lines %v", got)
			r.holds("session-9", 0, 1, 2)
			sum := r.queue.total()
			kit.Check(t, sum.Withheld == 0 && sum.Entries == 8 && !sum.Plain, "settled %+v", sum)
			want := map[string]string{"zstd, gzip": "zstd"}[codings]
			first, last := r.all()[0], r.last()
			kit.Check(t, first.encoding == "" && last.encoding == want, "codings %q, then %q, want %q", first.encoding, last.encoding, want)
			kit.Equal(t, "protocol", r.drainer.Health().Protocol, "ccship")
		})
	}
}

// TestCompressionRefused: 415 to a compressed body is answered with an uncompressed one.
func TestCompressionRefused(t *testing.T) {
	r := newRig(t)
	took(r)
	r.set(func(q *seen) *canned { return kit.If(q.encoding != "", status(415), nil) })
	r.queue.add(conversation(1), rowsOf(0, 300, 100)...)
	r.drain()
	r.holds("session-1", numbers(0, 300)...)
	kit.Equal(t, "requests", r.count(), 4)
}

// TestAnnouncedLater: a server that took entries as a plain one begins to speak the extension. The listener finds
// all of them recorded.
func TestAnnouncedLater(t *testing.T) {
	r := newRig(t)
	r.announce = false
	told := make(chan Settlement, 9)
	r.owner.announced = func() { told <- r.queue.total() }
	r.queue.add(conversation(1), mixed()...)
	r.drain()
	kit.Locked(&r.mu, func() { r.announce = true })
	r.add(conversation(2), rowsOf(0, 1, 1)...)
	sum := receive(t, told)
	kit.Check(t, sum.Withheld == 1 && sum.Plain, "told when %+v was recorded", sum)
	l := r.queue.remembered()
	kit.Check(t, l.Extension && l.Zstd, "told when %+v was remembered", l)
	kit.Equal(t, "protocol", r.drainer.Health().Protocol, "ccship")
	// And back: what it does not announce it is not sent.
	kit.Locked(&r.mu, func() { r.announce = false })
	r.add(conversation(3), rowsOf(0, 1, 1)...)
	r.drained()
	r.until("it is plain again", func() bool { return r.drainer.Health().Protocol == "plain" && !r.queue.remembered().Extension })
	kit.Equal(t, "told twice", len(told), 0)
}

// TestAnnouncedWhileInFlight: entries withheld before the announcement, and answered after it, are reported as well.
func TestAnnouncedWhileInFlight(t *testing.T) {
	r := newRig(t)
	r.announce = false
	r.queue.learned = Learned{Took: true}
	told := make(chan Settlement, 9)
	r.owner.announced = func() { told <- r.queue.total() }
	slow := make(chan struct{})
	r.set(func(q *seen) *canned {
		if q.session == "session-1" {
			<-slow
		}
		return nil
	})
	r.queue.add(conversation(1), mixed()...)
	r.start()
	r.until("it is in flight", func() bool { return r.count() == 1 })
	kit.Locked(&r.mu, func() { r.announce = true })
	r.add(conversation(2), rowsOf(0, 1, 1)...)
	kit.Equal(t, "withheld too early", receive(t, told).Withheld, 0)
	close(slow)
	kit.Equal(t, "told when it was recorded", receive(t, told).Withheld, 1)
}

// TestProbe: when only entries wait that a server of unknown abilities may not get, it is asked.
func TestProbe(t *testing.T) {
	r := newRig(t)
	r.announce = false
	r.queue.add(history(), rowsOf(0, 3, 3)...)
	r.queue.add(conversation(1), mixed()[1])
	r.start()
	r.until("it was asked", func() bool { return r.probed() > 0 })
	h := r.drainer.Health()
	kit.Check(t, r.count() == 0 && h.Protocol == "unknown" && h.State == StateUnknown && r.queue.waiting() == 2, "%d requests, health %+v", r.count(), h)
	kit.Locked(&r.mu, func() { r.announce = true })
	r.retried()
	r.holds("session-9", 0, 1, 2)
	r.holds("session-1", 2)
}

// TestUnknownSendsObjectsFirst, one request at a time, and what waited afterwards.
func TestUnknownSendsObjectsFirst(t *testing.T) {
	r := newRig(t)
	slow := make(chan struct{})
	r.set(func(q *seen) *canned {
		if q.number == 1 {
			<-slow
		}
		return nil
	})
	for id := uint64(1); id <= 3; id++ {
		r.queue.add(conversation(id), mixed()...)
	}
	r.start()
	r.until("one is in flight", func() bool { return r.count() == 1 })
	if q := r.last(); q.has("ccship.opaque") || q.encoding != "" || len(q.lines) != 4 {
		t.Errorf("first request has lines %v in %q", q.lines, q.encoding)
	}
	kit.Equal(t, "requests to an unknown server", r.count(), 1)
	close(slow)
	r.drained()
	for _, s := range []string{"session-1", "session-2", "session-3"} {
		if len(r.stored(s)) != 5 {
			t.Errorf("%s has %v", s, r.stored(s))
		}
	}
}

// TestLearnedUnreadable: delivery goes on when the memory does not.
func TestLearnedUnreadable(t *testing.T) {
	r := newRig(t)
	r.drainer.memory = forgetful{r.queue}
	r.queue.add(conversation(1), mixed()...)
	r.drain()
	if len(r.stored("session-1")) != 5 {
		t.Errorf("lines %v", r.stored("session-1"))
	}
}

type forgetful struct{ *memQueue }

func (forgetful) Learned(context.Context, string) (Learned, error) {
	return Learned{}, context.DeadlineExceeded
}

// TestLogTellsNothing: neither entries nor keys nor what the server said of them reach the log.
func TestLogTellsNothing(t *testing.T) {
	r := newRig(t)
	log, text := testLog()
	r.drainer.Log = log
	r.set(func(*seen) *canned { return &canned{status: 403, body: `{"message":"words of line 1 and ccs_secret"}`} })
	r.queue.add(conversation(1), rowsOf(0, 3, 3)...)
	r.start()
	r.troubled(StateRefused, KindRefusedKey)
	for range 3 {
		before := r.drainer.Health().RetryAt
		r.drainer.Retry(false)
		r.until("it was refused again", func() bool { return r.drainer.Health().RetryAt.Sub(before) > 0 && len(r.drainer.retry) == 0 })
	}
	r.set(nil)
	r.retried()
	r.stop()
	got := text()
	kit.Check(t, !strings.Contains(got, "words") && !strings.Contains(got, "ccs_"), "log:\n%s", got)
	if strings.Count(got, "\n") != 2 || !strings.Contains(got, "delivery refused") || !strings.Contains(got, "delivered again after 4 failures, 0s") {
		t.Errorf("log, want one line for the trouble and one for its end:\n%s", got)
	}
}
