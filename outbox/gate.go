package outbox

import (
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
)

const (
	probeInterval = time.Minute            // between requests to a server that refuses
	minBackoff    = 100 * time.Millisecond // full jitter may return 0
)

// gate decides when requests may go to a destination. Open: any time. Closed, after a failure: one request at a time,
// not before openAt. Owned by the loop.
type gate struct {
	backoff *backoff.ExponentialBackOff

	closed     bool
	openAt     time.Time // while closed: when the next request may go
	retryAfter time.Time // end of the server's Retry-After; nothing is sent before it
	round      uint64    // failures so far; the failure of a request started before the last one is ignored
	wokenRound uint64    // round of the last openNow; requests that started before it may be repeated at once
	failures   int       // consecutive
	since      time.Time // time of the first of them
	failure    reply     // the last of them
}

func newGate() gate {
	return gate{backoff: newBackOff(time.Minute)}
}

// newBackOff returns a backoff with full jitter: between 0 and a limit that doubles from 1 s to longest. The library
// jitters around its interval by up to 100 %, so its intervals are half of these limits. It never stops.
func newBackOff(longest time.Duration) *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(500*time.Millisecond), backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(1), backoff.WithMaxInterval(longest/2), backoff.WithMaxElapsedTime(0))
	b.Reset()
	return b
}

// allows reports whether one more request may be sent now.
func (g *gate) allows(now time.Time, inFlight, most int) bool {
	if now.Before(g.retryAfter) {
		return false
	}
	if g.closed {
		return inFlight == 0 && !now.Before(g.openAt)
	}
	return inFlight < most
}

// fail closes the gate. round is g.round when the request began. quick backs off by seconds even after a refusal, as
// after an answer that is not the server's own.
func (g *gate) fail(now time.Time, r reply, round uint64, quick bool) {
	if floor := now.Add(r.retryAfter); r.retryAfter > 0 && floor.After(g.retryAfter) {
		g.retryAfter = floor
	}
	if g.closed && round < g.round {
		return // it was in flight when the first failure came
	}
	if !g.closed {
		g.since, g.failures = now, 0
	}
	g.closed, g.failure = true, r
	g.round++
	g.failures++
	wait := max(g.backoff.NextBackOff(), minBackoff)
	switch {
	case round < g.wokenRound:
		wait = 0 // it used the old key or the old network
	case r.entry:
		wait = 0 // only the stream that it refused waits
	case r.verdict == refused && !quick && !r.foreign:
		wait = probeInterval
	}
	g.openAt = now.Add(wait)
	if g.retryAfter.After(g.openAt) {
		g.openAt = g.retryAfter
	}
}

// pass opens the gate after a success. It returns a log message if requests failed before, else "".
func (g *gate) pass(now time.Time) (recovered string) {
	g.backoff.Reset()
	if !g.closed {
		return ""
	}
	g.closed, g.failure = false, reply{}
	plural := "s"
	if g.failures == 1 {
		plural = ""
	}
	return fmt.Sprintf("delivered again after %d failure%s, %s", g.failures, plural, now.Sub(g.since).Round(time.Second))
}

// openNow ends backoff and refusal waits, but not the server's Retry-After.
func (g *gate) openNow(now time.Time) {
	g.backoff.Reset()
	g.round++
	g.wokenRound = g.round
	g.openAt = now
	if g.retryAfter.After(now) {
		g.openAt = g.retryAfter
	}
}

// next returns when the next request may be sent; a time in the past if nothing is delayed.
func (g *gate) next() time.Time {
	if g.closed && g.openAt.After(g.retryAfter) {
		return g.openAt
	}
	return g.retryAfter
}
