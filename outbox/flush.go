package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// acks collects what is to be recorded: settlements, and what was learned about the server. Owned by the loop.
type acks struct {
	pending    []Settlement
	raw        int64         // raw bytes of pending
	since      time.Time     // time of the first of them
	learn      bool          // save what was learned
	announce   bool          // then call Owner.Announced
	newKinds   Kinds         // before that call Owner.Accepts with these
	tookBefore bool          // and with this
	running    bool          // a flush is running
	patience   chan struct{} // closed to end the wait of the running one for other writes; nil: it does not wait
	patientTo  time.Time     // when it ends
	notBefore  time.Time     // after a failure
	backoff    *backoff.ExponentialBackOff
	failing    bool
}

func (a *acks) add(now time.Time, s Settlement) {
	if len(a.pending) == 0 {
		a.since = now
	}
	a.pending = append(a.pending, s)
	a.raw += s.Raw
}

func (a *acks) empty() bool { return len(a.pending) == 0 && !a.learn && !a.announce && a.newKinds == 0 }

// due reports whether to flush now. idle: no request is in flight whose acknowledgement could join.
func (a *acks) due(now time.Time, d *Drainer, idle bool) bool {
	if a.running || a.empty() || now.Before(a.notBefore) {
		return false
	}
	return idle || a.learn || a.announce || a.newKinds != 0 || a.raw >= ackBytes || now.Sub(a.since) >= d.ackDelay
}

// small reports whether everything there is to record may wait: a few acknowledged batches and nothing else.
func (a *acks) small() bool {
	for i := range a.pending {
		s := &a.pending[i]
		if s.Withheld+s.Unwanted+s.Gone > 0 || s.Forgotten || len(s.Dead) > 0 {
			return false
		}
	}
	return a.raw < patientBytes && !a.learn && !a.announce && a.newKinds == 0
}

// hurry ends the wait of the running flush for other writes.
func (a *acks) hurry() {
	if a.patience != nil {
		close(a.patience)
		a.patience = nil
	}
}

// next returns when a flush is due, or one that waits for company has waited enough; zero: never.
func (a *acks) next(d *Drainer) time.Time {
	if a.patience != nil {
		return a.patientTo
	}
	if a.running || a.empty() {
		return time.Time{}
	}
	at := a.since.Add(d.ackDelay)
	if a.notBefore.After(at) {
		return a.notBefore
	}
	return at
}

// flushJob is a flush and its result.
type flushJob struct {
	settlements []Settlement // recorded, or to be recorded again when err is set
	settled     bool
	newKinds    Kinds // call Owner.Accepts with these
	tookBefore  bool
	kindsDone   bool
	learned     *Learned // to save; nil: nothing
	saved       bool
	announce    bool // call Owner.Announced
	announced   bool
	patience    chan struct{} // until it is closed settlements wait for other writes; nil: they do not wait
	err         error
}

// flush works in an order that survives a crash after each step. First it reports new kinds, before anything records
// that they are known. Then it records settlements, then what was learned, so that a crash reports the kinds again.
// Last it reports the announcement: by then everything that a plain server accepted is recorded as such.
func (d *Drainer) flush(ctx context.Context, f flushJob) flushJob {
	if f.newKinds != 0 {
		if err := d.owner.Accepts(d.dest.Key, f.newKinds, f.tookBefore); err != nil {
			f.err = fmt.Errorf("record which kinds the server accepts: %w", err)
			return f
		}
	}
	f.kindsDone = true
	if len(f.settlements) > 0 {
		if err := d.queue.SettleLater(ctx, f.settlements, f.patience); err != nil {
			f.err = fmt.Errorf("record acknowledgements: %w", err)
			return f
		}
		for i := range f.settlements {
			if f.settlements[i].Forgotten {
				d.owner.Forgotten(f.settlements[i].Stream)
			}
		}
	}
	f.settled = true
	if f.learned != nil {
		if err := d.memory.Learn(ctx, d.dest.Key, *f.learned); err != nil {
			f.err = fmt.Errorf("record learned server limits: %w", err)
			return f
		}
	}
	f.saved = true
	if f.announce {
		d.owner.Announced(d.dest.Key)
	}
	f.announced = true
	return f
}

const (
	// patience is how long a small acknowledgement waits for a line that comes, to share its write: a write of its own
	// would be as expensive as the line's. A crash meanwhile sends again what the server knows.
	patience = 500 * time.Millisecond
	// patientBytes is how much may come again for that.
	patientBytes = 64 << 10
)

// patient reports whether what is to be recorded may wait for other writes: nothing waits for it, and it is little.
func (l *loop) patient(now time.Time) bool {
	a := &l.acks
	if l.d.hasty.Load() > 0 || l.refusal.Code != "" || !a.small() || a.patience != nil && !now.Before(a.patientTo) {
		return false
	}
	for _, lane := range l.lanes {
		if lane.blocked {
			return false
		}
	}
	return true
}

const (
	probeInterval = time.Minute // between requests to a server that refuses
	// minWait is the least time between two attempts after a failure: full jitter may return 0.
	minWait = 100 * time.Millisecond
	// soon is the longest wait while a failure is young or new rows come: so soon is a server found that is back.
	soon = 5 * time.Second
)

// longest returns the longest wait between two attempts when a server has failed for so long without a new row: nobody
// waits for it at once, and each attempt wakes the machine.
func longest(quiet time.Duration) time.Duration {
	switch {
	case quiet < 10*time.Minute:
		return soon
	case quiet < time.Hour:
		return 3 * soon
	}
	return 6 * soon
}

// gate decides when requests may go. Open: any time. Closed, after a failure: one request at a time, and none before a
// time. It is not safe for concurrent use.
type gate struct {
	backoff *backoff.ExponentialBackOff

	closed     bool
	openAt     time.Time // while closed: when the next request may go
	retryAfter time.Time // end of the server's Retry-After; nothing is sent before it
	round      uint64    // failures so far; the failure of a request started before the last one is ignored
	wokenRound uint64    // round of the last Open; requests that started before it may be repeated at once
	failures   int       // consecutive
	since      time.Time // time of the first of them
	failedAt   time.Time // time of the last of them
	quietSince time.Time // time of the first of them, of the last Open or of the last new row; waits grow from there
	pace       pace      // of the last of them
}

// pace is how soon a request may follow a failure.
type pace uint8

const (
	backOff pace = iota // up to 5 s; while no row comes longer, up to 30 s
	probing             // each minute: only a person can end the failure
	atOnce              // the failure concerns one stream, which waits by itself
)

// newGate returns an open gate.
func newGate() gate { return gate{backoff: newBackOff(soon)} }

// newBackOff returns a backoff with full jitter: between 0 and a limit that doubles from 1 s to most. The library
// jitters around its interval by up to 100 %, so its intervals are half of these limits. It never stops.
func newBackOff(most time.Duration) *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(500*time.Millisecond), backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(1), backoff.WithMaxInterval(most/2), backoff.WithMaxElapsedTime(0))
	b.Reset()
	return b
}

// Closed reports whether the last request failed.
func (g *gate) Closed() bool { return g.closed }

// Round counts failures and calls of Open. The caller notes it when a request begins, and passes it to Fail.
func (g *gate) Round() uint64 { return g.round }

// Allows reports whether one more request may be sent now.
func (g *gate) Allows(now time.Time, inFlight, most int) bool {
	if now.Before(g.retryAfter) {
		return false
	}
	if g.closed {
		return inFlight == 0 && !now.Before(g.openAt)
	}
	return inFlight < most
}

// Fail closes the gate. round is Round when the request began, retryAfter what the server asked for. It reports whether
// the failure is news: one of a request that was in flight at the first failure is not.
func (g *gate) Fail(now time.Time, round uint64, pace pace, retryAfter time.Duration) bool {
	if floor := now.Add(retryAfter); retryAfter > 0 && floor.After(g.retryAfter) {
		g.retryAfter = floor
	}
	if g.closed && round < g.round {
		return false
	}
	if !g.closed {
		g.since, g.quietSince, g.failures = now, now, 0
	}
	g.closed, g.failedAt, g.pace = true, now, pace
	g.round++
	g.failures++
	most := longest(now.Sub(g.quietSince))
	g.backoff.MaxInterval = most / 2
	wait := min(max(g.backoff.NextBackOff(), minWait), most) // it drew before it knew of the limit
	switch {
	case round < g.wokenRound: // it used the old key or the old network
		wait = 0
	case pace == atOnce:
		wait = 0
	case pace == probing:
		wait = probeInterval
	}
	g.openAt = now.Add(wait)
	if g.retryAfter.After(g.openAt) {
		g.openAt = g.retryAfter
	}
	return true
}

// Pass opens the gate after a success. It returns a log message if requests failed before, else "".
func (g *gate) Pass(now time.Time) (recovered string) {
	g.backoff.Reset()
	if !g.closed {
		return ""
	}
	g.closed = false
	plural := "s"
	if g.failures == 1 {
		plural = ""
	}
	return fmt.Sprintf("delivered again after %d failure%s, %s", g.failures, plural, now.Sub(g.since).Round(time.Second))
}

// Open ends backoff and the waiting for a server that refuses, but not the server's own Retry-After.
func (g *gate) Open(now time.Time) {
	g.backoff.Reset()
	g.round++
	g.wokenRound = g.round
	g.openAt, g.quietSince = now, now
	if g.retryAfter.After(now) {
		g.openAt = g.retryAfter
	}
}

// Arrived says that new rows wait: a session is in use, so a server that is back is found soon again. It ends neither a
// Retry-After nor the waiting for a server that refuses.
func (g *gate) Arrived(now time.Time) {
	if !g.closed || g.pace != backOff {
		return
	}
	g.quietSince = now
	at := g.failedAt.Add(soon)
	if at.Before(g.retryAfter) {
		at = g.retryAfter
	}
	if at.Before(g.openAt) {
		g.openAt = at
	}
}

// Flush is Open that ends a Retry-After too: a person wants to know now.
func (g *gate) Flush(now time.Time) {
	g.retryAfter = time.Time{}
	g.Open(now)
}

// Next returns when the next request may be sent; a time in the past if nothing is delayed.
func (g *gate) Next() time.Time {
	if g.closed && g.openAt.After(g.retryAfter) {
		return g.openAt
	}
	return g.retryAfter
}
