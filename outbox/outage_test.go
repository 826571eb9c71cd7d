package outbox

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestOutage: a server that is away for a day. Nothing is lost, everything comes in order, and the attempts are few.
func TestOutage(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig, p *pipes) {
		log, text := testLog()
		r.drainer.Log = log
		p.setDown(true)
		r.start()
		const hours, streams = 24, 5
		start := time.Now()
		lines := 0
		for time.Since(start) < hours*time.Hour {
			pass(2 * time.Hour)
			for id := uint64(1); id <= streams; id++ {
				r.add(conversation(id), rowsOf(lines, lines+3, 2)...)
			}
			lines += 3
			synctest.Wait()
			if h := r.drainer.Health(); lines > 3 && (h.State != StateRetrying || h.Kind != KindUnreachable || time.Until(h.RetryAt) > 5*time.Second) {
				t.Errorf("health %+v right after new rows", h)
			}
		}
		// Half of 5 s for ten minutes after new rows, then half of 15 s, after an hour half of 30 s.
		mean := time.Since(start) / time.Duration(p.dialled())
		kit.Check(t, mean >= 6*time.Second && mean <= 12*time.Second, "an attempt every %s", mean)
		p.setDown(false)
		pass(5*time.Second + time.Millisecond)
		synctest.Wait()
		kit.Equal(t, "rows wait after the server came back", r.queue.waiting(), 0)
		for id := 1; id <= streams; id++ {
			r.holds(fmt.Sprintf("session-%d", id), numbers(0, int64(lines))...)
		}
		got := text()
		kit.Check(t, strings.Count(got, "\n") == 2 && strings.Contains(got, "delivered again after"), "log, want two lines:\n%s", got)
	})
}

// TestBackSoon: however the server is away, what waits is stored within 5 s of its return; 30 s when nothing new came
// for hours, and then too at once when something does, or a caller asks.
func TestBackSoon(t *testing.T) {
	for name, test := range map[string]struct {
		away   time.Duration
		answer bool // it answers 503; else nobody does
		then   func(r *rig)
		within time.Duration
	}{
		"a moment":                     {20 * time.Second, false, nil, 5 * time.Second},
		"a moment, 503":                {20 * time.Second, true, nil, 5 * time.Second},
		"minutes":                      {9 * time.Minute, false, nil, 5 * time.Second},
		"half an hour":                 {30 * time.Minute, false, nil, 15 * time.Second},
		"hours":                        {5 * time.Hour, false, nil, 30 * time.Second},
		"hours, 503":                   {5 * time.Hour, true, nil, 30 * time.Second},
		"hours, then a new row":        {5 * time.Hour, false, func(r *rig) { r.add(conversation(1), rowsOf(5, 6, 1)...) }, 5 * time.Second},
		"hours, then a sync or a wake": {5 * time.Hour, true, func(r *rig) { r.drainer.Retry(false) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig, p *pipes) {
				if test.answer {
					r.set(func(*seen) *canned { return status(503) })
				} else {
					p.setDown(true)
				}
				r.queue.add(conversation(1), rowsOf(0, 5, 5)...)
				r.start()
				pass(test.away)
				p.setDown(false)
				r.set(nil)
				if test.then != nil {
					test.then(r)
				}
				pass(test.within + time.Millisecond)
				synctest.Wait()
				if n := r.queue.waiting(); n != 0 {
					t.Errorf("%d rows wait %s after the return, next attempt in %s", n, test.within, time.Until(r.drainer.Health().RetryAt))
				}
			})
		})
	}
}

// TestGreeted: a server that is known to answer greetings gets rows only now and then while it answers them with 503,
// and then one batch.
func TestGreeted(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig, _ *pipes) {
		took(r)
		r.queue.learned.Extension = true
		r.set(func(*seen) *canned { return status(503) })
		r.ail(503)
		r.queue.add(conversation(1), rowsOf(0, 300, 10)...)
		r.start()
		pass(10 * time.Minute)
		synctest.Wait()
		greetings, posts := r.probed(), r.count()
		kit.Check(t, greetings >= 120 && posts <= greetings/3+1 && posts >= greetings/3-1,
			"%d greetings, %d requests with rows", greetings, posts)
		for i, q := range r.all() {
			if i > 0 && len(q.lines) != 10 {
				t.Errorf("request %d has %d lines, want those of one batch", i, len(q.lines))
			}
		}
		r.ail(0)
		r.set(nil)
		pass(5*time.Second + time.Millisecond)
		synctest.Wait()
		r.holds("session-1", numbers(0, 300)...)
	})
}

// TestGreetingsFailForEver: what stands between answers greetings with 503, and lets rows pass.
func TestGreetingsFailForEver(t *testing.T) {
	for _, speaks := range []bool{true, false} {
		inBubble(t, func(t *testing.T, r *rig, _ *pipes) {
			took(r)
			r.queue.learned.Extension, r.announce = speaks, speaks
			r.ail(503)
			r.set(func(q *seen) *canned { return kit.If(q.number == 1, status(503), nil) })
			r.queue.add(conversation(1), rowsOf(0, 5, 5)...)
			r.start()
			pass(4*5*time.Second + time.Millisecond)
			synctest.Wait()
			kit.Equal(t, fmt.Sprintf("speaks %t: rows wait behind greetings", speaks), r.queue.waiting(), 0)
		})
	}
}
