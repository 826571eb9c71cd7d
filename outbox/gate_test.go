package outbox

import (
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

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
