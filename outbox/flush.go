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
