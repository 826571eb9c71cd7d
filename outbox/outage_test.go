package outbox

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
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

// overQuota answers 507 in the protocol's words to every request of a session.
func overQuota(sessions ...string) func(*seen) *canned {
	return func(q *seen) *canned {
		for _, s := range sessions {
			if q.session == s {
				return &canned{status: http.StatusInsufficientStorage,
					body: `{"error":{"code":"` + protocol.CodeOverQuota + `","message":"this user may have 1 sessions here"}}`}
			}
		}
		return nil
	}
}

// TestOverQuota: what the server stores no more of waits, without a dead letter, and the status says so, also while
// other transcripts are delivered. Once the limit is raised everything arrives.
func TestOverQuota(t *testing.T) {
	r := newRig(t)
	took(r)
	r.set(overQuota("session-2"))
	r.queue.add(conversation(2), rowsOf(0, 3, 3)...)
	r.start()
	r.troubled(StateRefused, KindOverQuota)
	r.add(conversation(1), rowsOf(0, 40, 10)...)
	r.until("the other transcript is delivered", func() bool { return r.drainer.Health().Entries == 40 })
	r.troubled(StateRefused, KindOverQuota)
	h := r.drainer.Health()
	kit.Check(t, strings.Contains(h.Detail, "may have 1 sessions") && strings.Contains(h.Hint, "user set"), "it says %q, hint %q", h.Detail, h.Hint)
	r.set(nil)
	r.drainer.Flush()
	r.drained()
	r.holds("session-2", numbers(0, 3)...)
	r.until("all is well", func() bool { return r.drainer.Health().State == StateOK })
	kit.Equal(t, "dead letters", r.drainer.Health().Dead, 0)
}

// TestFullProxy: 507 in other words is an error of the server or of a proxy, which is tried again soon.
func TestFullProxy(t *testing.T) {
	r := newRig(t)
	took(r)
	r.set(func(q *seen) *canned { return &canned{status: http.StatusInsufficientStorage, body: "disk full"} })
	r.queue.add(conversation(1), rowsOf(0, 3, 3)...)
	r.start()
	r.troubled(StateRetrying, KindServerError)
	r.set(nil)
	r.drained()
	kit.Equal(t, "dead letters", r.drainer.Health().Dead, 0)
}

// TestBackOffSpread: full jitter between 0 and an end that doubles from 1 s to 60 s, and it never ends.
func TestBackOffSpread(t *testing.T) {
	var most [12]time.Duration
	for range 300 {
		b := newBackOff(time.Minute)
		for i := range most {
			most[i] = max(most[i], b.NextBackOff())
		}
	}
	want := time.Second
	for i, got := range most {
		kit.Check(t, got <= want+time.Millisecond && got >= want*9/10, "wait %d: at most %s, want nearly %s", i, got, want)
		want = min(2*want, time.Minute)
	}
}

// TestLongest: the longer nothing new comes, the longer the waits, up to 30 s; a new row makes them short again.
func TestLongest(t *testing.T) {
	now, g := time.Unix(1_000_000, 0), newGate()
	wait := func(quiet time.Duration) time.Duration {
		t.Helper()
		g.quietSince = now.Add(-quiet)
		var most time.Duration
		for range 300 {
			g.Fail(now, g.Round(), backOff, 0)
			most = max(most, g.Next().Sub(now))
		}
		return most
	}
	g.Fail(now, g.Round(), backOff, 0)
	for _, test := range []struct{ quiet, want time.Duration }{
		{0, 5 * time.Second}, {9 * time.Minute, 5 * time.Second}, {10 * time.Minute, 15 * time.Second},
		{time.Hour, 30 * time.Second}, {100 * time.Hour, 30 * time.Second}, {time.Minute, 5 * time.Second},
	} {
		got := wait(test.quiet)
		kit.Check(t, got <= test.want && got >= test.want*9/10, "quiet for %s: waits of up to %s, want %s", test.quiet, got, test.want)
	}
}

// TestArrived: a new row ends a long wait, 5 s after the last attempt at the earliest; no plea, and no refusal.
func TestArrived(t *testing.T) {
	failed := time.Unix(1_000_000, 0)
	for name, test := range map[string]struct {
		pace       pace
		retryAfter time.Duration
		after      time.Duration // from the failure to the row
		want       time.Duration // from the failure to the next request
	}{
		"a young failure":  {backOff, 0, time.Second, 5 * time.Second},
		"an old failure":   {backOff, 0, 20 * time.Second, 5 * time.Second},
		"a plea":           {backOff, time.Minute, 20 * time.Second, time.Minute},
		"a refusal":        {probing, 0, 20 * time.Second, time.Minute},
		"one stream alone": {atOnce, 0, time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate()
			g.Fail(failed, g.Round(), test.pace, test.retryAfter)
			if test.pace == backOff {
				g.openAt = failed.Add(max(30*time.Second, test.retryAfter))
			}
			g.Arrived(failed.Add(test.after))
			kit.Equal(t, "next request after", g.Next().Sub(failed), test.want)
		})
	}
}

// TestManyAtOnce: a thousand clients whose server went away in the same moment do not come back in the same moment,
// minutes later or, because a session is written to, hours later.
func TestManyAtOnce(t *testing.T) {
	const clients = 1000
	start := time.Unix(1_000_000, 0)
	var asks [30]int // of all, by second after the first 30
	for range clients {
		g, now := newGate(), start
		for now.Sub(start) < 60*time.Second {
			g.Fail(now, g.Round(), backOff, 0)
			g.Arrived(now)
			now = g.Next()
			if second := int(now.Sub(start)/time.Second) - 30; second >= 0 && second < len(asks) {
				asks[second]++
			}
		}
	}
	for second, n := range asks {
		kit.Check(t, n >= clients/5 && n <= clients*3/5, "%d requests in second %d, want about 400", n, second+30)
	}
}

// TestWaits: how long each kind of failure holds up the next request, and what ends the wait.
func TestWaits(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for name, test := range map[string]struct {
		pace       pace
		retryAfter time.Duration
		least      time.Duration // from the failure to the next request
		opened     time.Duration // the same after Open; after Flush it is always 0
	}{
		"back-off":                  {backOff, 0, minWait, 0},
		"probing":                   {probing, 0, time.Minute, 0},
		"at once":                   {atOnce, 0, 0, 0},
		"a plea":                    {backOff, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute},
		"a plea of one that probes": {probing, time.Second, time.Minute, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate()
			kit.Check(t, g.Fail(now, g.Round(), test.pace, test.retryAfter) && g.Closed(), "the gate is open")
			allowed := func(after time.Duration) {
				t.Helper()
				kit.Check(t, after <= 0 || !g.Allows(now.Add(after-time.Nanosecond), 0, 4), "allowed before %s", after)
				kit.Check(t, !g.Allows(now.Add(max(after, time.Minute)), 1, 4), "two requests at once")
			}
			allowed(test.least)
			g.Open(now)
			allowed(test.opened)
			kit.Check(t, g.Allows(now.Add(test.opened), 0, 4), "still closed")
			g.Flush(now)
			kit.Check(t, g.Allows(now, 0, 4), "still closed after Flush")
			kit.Check(t, g.Pass(now) != "" && g.Allows(now, 3, 4) && g.Pass(now) == "", "not open after a success")
		})
	}
}

// TestLateFailure: the failure of a request that was in flight at the first one is no news; its plea counts.
func TestLateFailure(t *testing.T) {
	now, g := time.Unix(1_000_000, 0), newGate()
	round := g.Round()
	g.Fail(now, round, probing, 0)
	kit.Check(t, !g.Fail(now, round, backOff, 2*time.Minute), "it is news")
	at := g.Next()
	kit.Check(t, at.Equal(now.Add(2*time.Minute)), "next at %s", at)
}
