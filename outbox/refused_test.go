package outbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// took prepares a server that has taken entries before, so that it may refuse some.
func took(r *rig) {
	r.queue.learned = Learned{Took: true, Config: r.drainer.dest.fingerprint(), Extension: true, Zstd: true}
}

// TestOtherKeySinceRestart buries nothing at a server that took entries once, but with another key: it may refuse
// everything now.
func TestOtherKeySinceRestart(t *testing.T) {
	r := newRig(t)
	took(r)
	r.queue.learned.Config++
	r.server.set(refusing(400, 1))
	r.add(Stream{ID: 1, SessionID: "one"}, rowsOf(0, 3, 3)...)
	r.start()
	r.until("delivery is refused", func() bool { return r.drainer.Health().State == StateRefused })
	kit.Equal(t, "entries buried", r.drainer.Health().Dead, 0)
}

// refusing answers code to every request that holds one of the lines.
func refusing(code int, lines ...int64) func(*seen) *canned {
	return func(q *seen) *canned {
		for _, n := range q.lines {
			if slices.Contains(lines, n) {
				return &canned{status: code, body: fmt.Sprintf(`{"error":{"message":"line %d is poison"}}`, n)}
			}
		}
		return nil
	}
}

// TestPoison: entries that the server refuses for what they are become dead letters, and nothing else does.
func TestPoison(t *testing.T) {
	tests := []struct {
		name   string
		rows   []Batch
		poison []int64
	}{
		{"first", rowsOf(0, 40, 10), []int64{0}},
		{"middle", rowsOf(0, 40, 10), []int64{17}},
		{"last", rowsOf(0, 40, 10), []int64{39}},
		{"two in one row", rowsOf(0, 40, 10), []int64{12, 18}},
		{"two side by side", rowsOf(0, 40, 40), []int64{19, 20}},
		{"two in two rows", rowsOf(0, 40, 10), []int64{5, 33}},
		{"a row of one", rowsOf(0, 5, 1), []int64{2}},
		{"seven in a row", rowsOf(0, 40, 10), numbers(10, 17)},
		{"ten with others between", rowsOf(0, 40, 10), []int64{0, 4, 8, 12, 16, 20, 24, 28, 32, 36}},
	}
	for _, code := range []int{400, 422} {
		for _, test := range tests {
			t.Run(fmt.Sprintf("%d %s", code, test.name), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				took(r)
				r.set(refusing(code, test.poison...))
				r.queue.add(conversation(1), test.rows...)
				r.drain()
				last := int64(0)
				for _, b := range test.rows {
					last += int64(b.Entries)
				}
				r.holds("session-1", numbers(0, last, test.poison...)...)
				r.buried(test.poison, code, "rejected")
				n := r.queue.committed()
				kit.Check(t, n <= 2, "%d commits: acknowledgements and dead letters are one", n)
			})
		}
	}
}

// buried checks the dead letters.
func (r *rig) buried(lines []int64, code int, reason string) {
	r.t.Helper()
	sum := r.queue.total()
	var got []int64
	for _, d := range sum.Dead {
		got = append(got, d.Line)
		raw, err := (&codecs{}).Unpack(nil, &d.Batch)
		if n, _ := lineIndex(raw); err != nil || n != d.Line || d.Batch.Entries != 1 {
			r.t.Errorf("dead letter of line %d holds %.60s, %v", d.Line, raw, err)
		}
		kit.Check(r.t, d.Status == code && d.Reason == reason && d.At != 0, "dead letter %d %q at %d", d.Status, d.Reason,
			d.At)
		kit.Check(r.t, reason != "rejected" || strings.Contains(d.Answer, fmt.Sprintf("line %d is poison", d.Line)),
			"answer %q", d.Answer)
	}
	kit.Equal(r.t, "dead letters of lines", got, lines)
	r.until("it is counted", func() bool {
		h := r.drainer.Health()
		return h.Dead == int64(len(lines)) && h.Entries == sum.Entries && h.Bytes == sum.Raw
	})
}

// TestEightInARow: a server that refuses that many is wrong itself: nothing becomes a dead letter.
func TestEightInARow(t *testing.T) {
	for _, each := range []int{20, 10} {
		r := newRig(t)
		took(r)
		r.set(refusing(422, numbers(0, 40)...))
		r.queue.add(conversation(1), rowsOf(0, 40, each)...)
		r.start()
		r.troubled(StateRefused, KindRefused)
		if sum := r.queue.total(); len(sum.Dead) > 0 || r.queue.waiting() != 40/each {
			t.Errorf("dead %d, %d rows wait", len(sum.Dead), r.queue.waiting())
		}
		r.drainer.Retry(false)
		r.until("it was asked again", func() bool { return r.drainer.Health().State == StateRefused })
		r.set(nil)
		r.retried()
		r.holds("session-1", numbers(0, 40)...)
	}
}

// TestNothingAcceptedSince: without an accepted entry after them, refused ones wait, whatever comes; with one they are
// known to be at fault.
func TestNothingAcceptedSince(t *testing.T) {
	r := newRig(t)
	took(r)
	r.set(refusing(400, numbers(0, 7)...))
	r.start()
	for line := range 7 {
		r.add(conversation(1), rowsOf(line, line+1, 1)...)
		r.until("the server refuses", func() bool {
			return r.drainer.Health().Kind == KindRefused || len(r.queue.total().Dead) > 0
		})
		kit.Require(t, len(r.queue.total().Dead) == 0, "line %d is dead, though nothing was accepted since", line)
		r.drainer.Retry(false)
	}
	if sum := r.queue.total(); len(sum.Dead) > 0 || r.queue.waiting() != 7 {
		t.Errorf("dead %d, %d rows wait", len(sum.Dead), r.queue.waiting())
	}
	line := 90
	r.until("the queue is empty", func() bool {
		if r.queue.waiting() <= 7 {
			r.add(conversation(2), rowsOf(line, line+1, 1)...)
			line++
		}
		r.drainer.Retry(false)
		return len(r.queue.total().Dead) > 0
	})
	r.drained()
	kit.Equal(t, "dead letters", len(r.queue.total().Dead), 7)
}

// TestRefusedStreamDelaysNobody: what the server refuses of ten streams does not keep an eleventh waiting.
func TestRefusedStreamDelaysNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig, _ *pipes) {
		took(r)
		r.set(func(q *seen) *canned {
			return kit.If(q.session != "session-11", &canned{status: 400, body: `{"error":{"code":"bad_request","message":"session_id has control characters"}}`}, nil)
		})
		r.backlog(10, 0, 1, 1)
		r.start()
		r.troubled(StateRefused, KindRefused)
		for line := range 20 {
			r.add(conversation(11), rowsOf(line, line+1, 1)...)
			pass(2 * time.Second)
			r.holds("session-11", numbers(0, int64(line+1))...)
		}
	})
}

// TestForeignAnswers: what a server that is known to speak the extension would never answer acknowledges nothing, and
// nothing is blamed for it, though other requests pass.
func TestForeignAnswers(t *testing.T) {
	for name, answer := range map[string]*canned{
		"400 with a page":     {status: 400, body: "<html>Bad Request</html>"},
		"422 of another API":  {status: 422, body: `{"message":"no"}`},
		"413 to a small line": {status: 413, body: "<html>too large</html>"},
		"200 uncounted":       {status: 200, body: `{"success":true}`},
		"200 miscounted":      {status: 200, body: `{"success":true,"entries_stored":999999}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			took(r)
			r.queue.add(conversation(9), rowsOf(0, 50, 50)...)
			r.drain()
			kit.Locked(&r.mu, func() { r.announce = false })
			r.set(func(q *seen) *canned { return kit.If(q.session == "session-1", answer, &canned{status: 503}) })
			for line := range 5 {
				r.add(conversation(1), rowsOf(line, line+1, 1)...)
				before := r.count()
				r.drainer.Retry(false)
				r.until("it was asked", func() bool { return r.count() > before })
			}
			if sum := r.queue.total(); len(sum.Dead) > 0 || r.queue.waiting() != 5 {
				t.Errorf("dead %d, %d rows wait", len(sum.Dead), r.queue.waiting())
			}
			kit.Locked(&r.mu, func() { r.announce = true })
			r.set(nil)
			r.retried()
			r.holds("session-1", numbers(0, 5)...)
		})
	}
}

// TestNotProven: after a change of the configuration the server has to take something before entries are blamed.
func TestNotProven(t *testing.T) {
	r := newRig(t)
	took(r)
	r.set(refusing(400, 3))
	r.drainer.Retry(true)
	r.start()
	r.until("the change is known", func() bool { return len(r.drainer.retry) == 0 })
	r.add(conversation(1), rowsOf(0, 10, 10)...)
	r.troubled(StateRefused, KindRefused)
	r.add(conversation(2), rowsOf(0, 1, 1)...)
	r.retried()
	r.holds("session-1", numbers(0, 10, 3)...)
}

// TestFlakyBisection: a server that fails now and then does not make a bisection start over for ever.
func TestFlakyBisection(t *testing.T) {
	r := newRig(t)
	took(r)
	poison := refusing(400, 77)
	r.set(func(q *seen) *canned {
		if q.number%2 == 1 {
			r.drainer.Retry(false) // so that the test need not wait
			return status(503)
		}
		return poison(q)
	})
	r.queue.add(conversation(1), rowsOf(0, 100, 100)...)
	r.start()
	r.retriedOften()
	r.holds("session-1", numbers(0, 100, 77)...)
	r.buried([]int64{77}, 400, "rejected")
	n := r.count()
	kit.Check(t, n <= 40, "%d requests for a bisection of 100", n)
}

// TestTooLarge: requests shrink until they pass; the limit is remembered, also over a restart.
func TestTooLarge(t *testing.T) {
	for _, each := range []int{5, 100} {
		r := newRig(t)
		took(r)
		const most = 1500
		ladder := func(q *seen) *canned { return kit.If(len(q.body) > most, status(413), nil) }
		r.set(ladder)
		r.queue.add(conversation(1), rowsOf(0, 100, each)...)
		r.drain()
		r.holds("session-1", numbers(0, 100)...)
		limit := r.drainer.Health().MaxRequest
		kit.Check(t, limit > 0 && limit <= most && len(r.queue.total().Dead) <= 0, "limit %d, %d dead", limit,
			len(r.queue.total().Dead))
		r.stop()
		l := r.queue.remembered()
		kit.Check(t, l.MaxRaw == limit && time.Since(time.Unix(l.MaxRawAt, 0)) <= time.Minute, "remembered %+v, want limit %d", l, limit)
		later := rigOf(t, r.server, r.drainer.dest.URL.Scheme+"://"+r.drainer.dest.URL.Host, r.drainer.Client)
		later.queue = r.queue
		later.drainer.queue, later.drainer.memory = r.queue, r.queue
		later.set(func(q *seen) *canned {
			kit.Check(t, len(q.body) <= most, "%d bytes sent, though the limit was known", len(q.body))
			return ladder(q)
		})
		later.queue.add(conversation(1), rowsOf(100, 200, each)...)
		later.start()
		later.drained()
		later.stop()
	}
}

// TestOneEntryTooLarge: it alone becomes a dead letter; its neighbours pass, and requests do not shrink for it.
func TestOneEntryTooLarge(t *testing.T) {
	r := newRig(t)
	took(r)
	r.set(func(q *seen) *canned { return kit.If(len(q.body) > 3000, status(413), nil) })
	big := batchOf(Objects, 5, entry(5, strings.Repeat("x", 5000)))
	r.queue.add(conversation(1), append(append(rowsOf(0, 5, 5), big), rowsOf(6, 10, 4)...)...)
	r.drain()
	r.holds("session-1", numbers(0, 10, 5)...)
	r.buried([]int64{5}, 413, "too_large")
}

// TestLimitForgotten: a change of the configuration ends the learned limit, a mere retry does not.
func TestLimitForgotten(t *testing.T) {
	r := newRig(t)
	took(r)
	r.queue.learned.MaxRaw, r.queue.learned.MaxRawAt = 700, time.Now().Unix()
	r.start()
	r.drainer.Retry(false)
	r.add(conversation(1), rowsOf(0, 50, 50)...)
	r.drained()
	n := r.count()
	kit.Check(t, n >= 4, "%d requests within a limit of 700 bytes", n)
	before := r.count()
	r.drainer.Retry(true)
	r.until("the limit is gone", func() bool { return r.drainer.Health().MaxRequest == 0 && r.queue.remembered().MaxRaw == 0 })
	r.add(conversation(1), rowsOf(50, 100, 50)...)
	r.drained()
	kit.Equal(t, "requests without a limit", r.count()-before, 1)
}

// TestDamagedRow: a row that cannot be unpacked becomes a dead letter as a whole, and its neighbours pass.
func TestDamagedRow(t *testing.T) {
	for _, codings := range []string{"", "zstd"} {
		r := newRig(t)
		r.queue.learned = Learned{Took: true, Config: r.drainer.dest.fingerprint(), Extension: true, Zstd: codings == "zstd"}
		r.codings = codings
		rows := rowsOf(0, 30, 10)
		rows[1].Frame[0] ^= 0xff
		r.broken = status(400)
		r.queue.add(conversation(1), rows...)
		r.drain()
		r.holds("session-1", numbers(0, 30, numbers(10, 20)...)...)
		dead := r.queue.total().Dead
		kit.Check(t, len(dead) == 1 && dead[0].Reason == "damaged" && dead[0].Batch.Entries == 10, "%s: dead letters %+v", codings, dead)
		r.stop()
	}
}
