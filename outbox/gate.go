package outbox

import (
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
)

const (
	probeInterval = time.Minute            // of a destination that refuses
	shortestWait  = 100 * time.Millisecond // full jitter may say 0
)

// gate says when a destination may be sent to. Open: at will. Closed: one request at a time, not before openAt.
// Owned by the loop.
type gate struct {
	waits *backoff.ExponentialBackOff

	closed   bool
	openAt   time.Time // while closed: when the next request may go
	floor    time.Time // the server's Retry-After; nothing goes before it
	round    uint64    // failures so far; a request started before the last of them says nothing new
	woken    uint64    // round of the last wake; what failed of requests begun before it may pass now
	failures int       // in a row
	since    time.Time // when the first of them was
	trouble  reply     // the last of them
}

func newGate() gate {
	return gate{waits: newBackOff(time.Minute)}
}

// newBackOff returns waits with full jitter: between 0 and an upper end that doubles from 1 s to longest. The library jitters
// around an interval, by up to the whole of it, so its intervals are half of those ends. It never says stop.
func newBackOff(longest time.Duration) *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(500*time.Millisecond), backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(1), backoff.WithMaxInterval(longest/2), backoff.WithMaxElapsedTime(0))
	b.Reset()
	return b
}

// allows says whether one more request may go now.
func (g *gate) allows(now time.Time, inFlight, most int) bool {
	if now.Before(g.floor) {
		return false
	}
	if g.closed {
		return inFlight == 0 && !now.Before(g.openAt)
	}
	return inFlight < most
}

// fail closes the gate. round is what g.round was when the request began; quick waits seconds even after a refusal.
func (g *gate) fail(now time.Time, r reply, round uint64, quick bool) {
	if floor := now.Add(r.retryAfter); r.retryAfter > 0 && floor.After(g.floor) {
		g.floor = floor
	}
	if g.closed && round < g.round {
		return // one of those that were in flight when the trouble began
	}
	if !g.closed {
		g.since, g.failures = now, 0
	}
	g.closed, g.trouble = true, r
	g.round++
	g.failures++
	wait := max(g.waits.NextBackOff(), shortestWait)
	switch {
	case round < g.woken:
		wait = 0 // it went with the old key, or into a network that is another now
	case r.verdict == refuse && !quick:
		wait = probeInterval
	}
	g.openAt = now.Add(wait)
	if g.floor.After(g.openAt) {
		g.openAt = g.floor
	}
}

// pass opens the gate: the server took something. It returns words for the log when there was trouble before.
func (g *gate) pass(now time.Time) (recovered string) {
	g.waits.Reset()
	if !g.closed {
		return ""
	}
	g.closed, g.trouble = false, reply{}
	plural := "s"
	if g.failures == 1 {
		plural = ""
	}
	return fmt.Sprintf("delivered again after %d failure%s, %s", g.failures, plural, now.Sub(g.since).Round(time.Second))
}

// wake ends every wait but the server's Retry-After.
func (g *gate) wake(now time.Time) {
	g.waits.Reset()
	g.round++
	g.woken = g.round
	g.openAt = now
	if g.floor.After(now) {
		g.openAt = g.floor
	}
}

// next is when something may go that may not go now; a time past when nothing is held back.
func (g *gate) next() time.Time {
	if g.closed && g.openAt.After(g.floor) {
		return g.openAt
	}
	return g.floor
}
