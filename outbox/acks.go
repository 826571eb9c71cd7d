package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// acks groups what is to be recorded: settlements, and what was learned of the server. Owned by the loop.
type acks struct {
	pending []Settlement
	raw     int64     // bytes of pending
	since   time.Time // when the first of them came
	learn   bool      // what was learned is to be saved
	tell    bool      // then OnAnnounced is to be called
	begins  Kinds     // before that OnAccepts is, with these
	again   bool      // and this
	running bool      // a flush is under way
	notYet  time.Time // after a failure: not before
	waits   *backoff.ExponentialBackOff
	failing bool
}

func (a *acks) add(now time.Time, s Settlement) {
	if len(a.pending) == 0 {
		a.since = now
	}
	a.pending = append(a.pending, s)
	a.raw += s.Raw
}

func (a *acks) empty() bool { return len(a.pending) == 0 && !a.learn && !a.tell && a.begins == 0 }

// due says whether to flush now; idle that nothing is in flight which could join.
func (a *acks) due(now time.Time, d *Drainer, idle bool) bool {
	if a.running || a.empty() || now.Before(a.notYet) {
		return false
	}
	return idle || a.learn || a.tell || a.begins != 0 || a.raw >= d.AckBytes || now.Sub(a.since) >= d.AckDelay
}

// next is when a flush falls due by itself; zero when none does.
func (a *acks) next(d *Drainer) time.Time {
	if a.running || a.empty() {
		return time.Time{}
	}
	at := a.since.Add(d.AckDelay)
	if a.notYet.After(at) {
		return a.notYet
	}
	return at
}

// flushed is a flush, and what became of it.
type flushed struct {
	settlements []Settlement // settled, or to be settled again when err is set
	settled     bool
	begins      Kinds // OnAccepts was to be called with these
	again       bool
	begun       bool
	learned     *Learned // to be saved; nil: nothing was
	saved       bool
	telling     bool // OnAnnounced was to be called
	told        bool
	err         error
}

// flush tells of the kinds that the server begins to take, before anything says that they are known. Then it records
// settlements, then what was learned, so that a crash tells of the kinds again, then tells of the announcement: whoever
// is told finds everything that a plain server took recorded as such.
func (d *Drainer) flush(ctx context.Context, f flushed) flushed {
	if f.begins != 0 && d.OnAccepts != nil {
		if err := d.OnAccepts(f.begins, f.again); err != nil {
			f.err = fmt.Errorf("record what the server takes now: %w", err)
			return f
		}
	}
	f.begun = true
	if len(f.settlements) > 0 {
		if err := d.queue.Settle(ctx, f.settlements); err != nil {
			f.err = fmt.Errorf("record acknowledgements: %w", err)
			return f
		}
		d.tellForgotten(f.settlements)
	}
	f.settled = true
	if f.learned != nil {
		if err := d.memory.Learn(ctx, d.dest.Key, *f.learned); err != nil {
			f.err = fmt.Errorf("record what the server speaks: %w", err)
			return f
		}
	}
	f.saved = true
	if f.telling && d.OnAnnounced != nil {
		d.OnAnnounced()
	}
	f.told = true
	return f
}

func (d *Drainer) tellForgotten(settlements []Settlement) {
	if d.OnForgotten == nil {
		return
	}
	for i := range settlements {
		if settlements[i].Forgotten {
			d.OnForgotten(settlements[i].Stream)
		}
	}
}
