// Package derive keeps the summary, the texts, the answers and the drops of every stream in step with the stored
// lines, knows which texts of a line can be found and what tokens cost, and answers from what is derived: what happened
// in a session, who touched a file and why. It quotes what is stored, and asks no model. Each answer has bounded cost,
// and shows only what its scope may see.
package derive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/session"
)

const (
	// deriveFormat rises when things are derived differently: then everything is derived again, as it is when
	// transcript's own version rises.
	deriveFormat = 8
	// gather is the longest that lines are collected after the first, so that a live session is not derived line by line:
	// see pause. gatherLeast is the shortest: lines often come several at once.
	gather, gatherLeast = 200 * time.Millisecond, 10 * time.Millisecond
	// share is how many times as long as its last round took a Deriver rests after it, up to gather.
	share = 15
	// lookAgain is how often to check without a notification: for missed changes.
	lookAgain = time.Minute
	// lookLeased is how often to check while others have leased what lags: one of them may be gone.
	lookLeased = 5 * time.Second
	// deriveBackoff and deriveBackoffMax bound the wait after a failure.
	deriveBackoff    = time.Second
	deriveBackoffMax = time.Minute
	// turn is about how long a worker stays with what it has leased; then it looks whether something is more urgent.
	turn = time.Second
	// leaseMost is how many streams a worker leases at once when little is to be done for each.
	// leaseFirst is how many it begins with, and the least.
	leaseMost, leaseFirst = 64, 4
	// rest is how long the lines of a stream gather when many streams are written at once.
	rest = 1500 * time.Millisecond
)

// Format is the format of everything that a Deriver of this program derives.
const Format = deriveFormat<<16 | session.FoldVersion

// Derivable is what a Deriver needs of a store.
type Derivable interface {
	server.DerivationStore
	server.Watcher
	View(ctx context.Context, scope server.Scope, ref server.Ref) (server.Snapshot, error)
}

// Deriver keeps facts, texts and answers in step with the stored lines. Several Derivers, in one process or many,
// share the work. Its memory is bounded, whatever the lines: it works in steps, and another can continue where one
// stops.
type Deriver struct {
	Store   Derivable
	Log     *slog.Logger // nil: none
	Workers int          // that derive at once; 0: half of the processors, two at least

	kept  kept
	rests atomic.Int64 // until when streams rest, in nanoseconds
	soon  bool         // a stream may still have rested when the last round looked
	owed  bool         // something lagged when the last round ended
	lease atomic.Int64 // how many streams a worker leases at once

	ended time.Time     // when the last round ended
	took  time.Duration // how long it took
}

// Run derives until ctx is done, which is no error. Failures are logged and tried again.
func (d *Deriver) Run(ctx context.Context) error {
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	changes, err := d.Store.Changes(ctx)
	if err != nil {
		return fmt.Errorf("watch the store: %w", err)
	}
	renewed := false
	var backoff time.Duration
	for ctx.Err() == nil {
		err := d.round(ctx, &renewed)
		switch {
		case ctx.Err() != nil:
		case err != nil && backoff == 0:
			d.Log.Warn("deriving fails; it is tried again", "error", err)
		case err == nil && backoff > 0:
			d.Log.Info("deriving works again")
		}
		if err == nil {
			backoff = 0
			d.await(ctx, changes)
			continue
		}
		backoff = min(max(2*backoff, deriveBackoff), deriveBackoffMax)
		select {
		case <-ctx.Done():
		case <-time.After(backoff):
		}
	}
	return nil
}

// round derives all that is due. A task that fails does not stop those after it; round returns the first error.
func (d *Deriver) round(ctx context.Context, renewed *bool) error {
	if !*renewed {
		if err := d.Store.Renew(ctx, Format); err != nil {
			return err
		}
		*renewed = true
	}
	began := time.Now()
	defer func() {
		d.soon = d.rests.Load() >= began.UnixNano()
		d.ended, d.took = time.Now(), time.Since(began)
	}()
	n := d.Workers
	if n == 0 {
		n = max(2, runtime.GOMAXPROCS(0)/2)
	}
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = d.work(ctx) })
	}
	all.Wait()
	lag, err := d.Store.Lag(ctx)
	d.owed = err == nil && lag > 0
	return cmp.Or(cmp.Or(errs...), err)
}

// work is one worker's part of a round. It leases as many streams at once as take about one step each.
func (d *Deriver) work(ctx context.Context) error {
	var first error
	for ctx.Err() == nil {
		n := int(max(leaseFirst, d.lease.Load()))
		tasks, err := d.Store.Lagging(ctx, n)
		if err != nil {
			return errors.Join(first, err)
		}
		if len(tasks) == 0 {
			return first
		}
		t := shift{d: d, ends: time.Now().Add(turn), rest: len(tasks) >= leaseMost/2}
		t.derive(ctx, tasks)
		if t.rest {
			d.rests.Store(time.Now().Add(rest).UnixNano())
		}
		if first == nil {
			first = t.first
		}
		switch {
		case t.steps > 2*len(tasks):
			d.lease.Store(int64(n / 2))
		case len(tasks) == n:
			d.lease.Store(int64(min(leaseMost, 2*n)))
		}
	}
	return first
}

// pause returns how long lines are collected before the next round, when the last one took so long and ended so long
// ago. What comes after some quiet is derived at once, so that it can be found; what comes without a pause costs a
// limited share of the time.
func pause(took, since time.Duration) time.Duration {
	return max(gatherLeast, min(gather, share*took)-since)
}

// await returns shortly after something was stored, or when it is time to check anyway. While idle it costs one
// timer.
func (d *Deriver) await(ctx context.Context, changes <-chan server.Change) {
	look := lookAgain
	switch {
	case d.soon:
		look = rest // lines of a resting stream may have been announced already
	case d.owed:
		look = lookLeased
	}
	select {
	case <-ctx.Done():
		return
	case <-changes:
	case <-time.After(look):
		return
	}
	together := time.After(pause(d.took, time.Since(d.ended)))
	for {
		select {
		case _, ok := <-changes:
			if !ok {
				return
			}
		case <-together:
			return
		}
	}
}
