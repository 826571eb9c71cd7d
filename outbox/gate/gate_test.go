package gate

import (
	"testing"
	"time"
)

// TestBackOffSpread: full jitter between 0 and an end that doubles from 1 s to 60 s, and it never ends.
func TestBackOffSpread(t *testing.T) {
	var most [12]time.Duration
	for range 300 {
		b := NewBackOff(time.Minute)
		for i := range most {
			most[i] = max(most[i], b.NextBackOff())
		}
	}
	want := time.Second
	for i, got := range most {
		if got > want+time.Millisecond || got < want*9/10 {
			t.Errorf("wait %d: at most %s, want nearly %s", i, got, want)
		}
		want = min(2*want, time.Minute)
	}
}

// TestWaits: how long each kind of failure holds up the next request, and what ends the wait.
func TestWaits(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for name, test := range map[string]struct {
		pace       Pace
		retryAfter time.Duration
		least      time.Duration // from the failure to the next request
		opened     time.Duration // the same after Open; after Flush it is always 0
	}{
		"back-off":                  {BackOff, 0, MinWait, 0},
		"probing":                   {Probing, 0, time.Minute, 0},
		"at once":                   {AtOnce, 0, 0, 0},
		"a plea":                    {BackOff, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute},
		"a plea of one that probes": {Probing, time.Second, time.Minute, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			g := New()
			if !g.Fail(now, g.Round(), test.pace, test.retryAfter) || !g.Closed() {
				t.Error("the gate is open")
			}
			allowed := func(after time.Duration) {
				t.Helper()
				if after > 0 && g.Allows(now.Add(after-time.Nanosecond), 0, 4) {
					t.Errorf("allowed before %s", after)
				}
				if g.Allows(now.Add(max(after, time.Minute)), 1, 4) {
					t.Error("two requests at once")
				}
			}
			allowed(test.least)
			g.Open(now)
			allowed(test.opened)
			if !g.Allows(now.Add(test.opened), 0, 4) {
				t.Error("still closed")
			}
			g.Flush(now)
			if !g.Allows(now, 0, 4) {
				t.Error("still closed after Flush")
			}
			if g.Pass(now) == "" || !g.Allows(now, 3, 4) || g.Pass(now) != "" {
				t.Error("not open after a success")
			}
		})
	}
}

// TestLateFailure: the failure of a request that was in flight at the first one is no news; its plea counts.
func TestLateFailure(t *testing.T) {
	now, g := time.Unix(1_000_000, 0), New()
	round := g.Round()
	g.Fail(now, round, Probing, 0)
	if g.Fail(now, round, BackOff, 2*time.Minute) {
		t.Error("it is news")
	}
	if at := g.Next(); !at.Equal(now.Add(2 * time.Minute)) {
		t.Errorf("next at %s", at)
	}
}
