package derive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/session"
)

const (
	// deriveFormat rises when things are derived differently: then everything is derived again, as it is when
	// transcript's own version rises.
	deriveFormat = 1
	// gather is how long lines are collected after the first, so that a live session is not derived line by line.
	gather = 200 * time.Millisecond
	// lookAgain is how often to check without a notification: for missed changes, and for tasks leased by a server that is
	// gone.
	lookAgain = time.Minute
	// deriveBackoff and deriveBackoffMax bound the wait after a failure.
	deriveBackoff    = time.Second
	deriveBackoffMax = time.Minute
)

// Format is the format of everything that a Deriver of this program derives.
const Format = deriveFormat<<16 | session.FoldVersion

// Derivable is what a Deriver needs of a store.
type Derivable interface {
	server.DerivationStore
	server.Watcher
	View(ctx context.Context, scope server.Scope, ref server.Ref) (server.Snapshot, error)
	SummaryOf(ctx context.Context, stream int64) (server.Summary, error)
}

// Deriver keeps facts, texts and answers in step with the stored lines. Several Derivers, in one process or many, share
// the work. Its memory is bounded, whatever the lines: it works in steps, and another can continue where one stops.
type Deriver struct {
	Store Derivable
	Log   *slog.Logger // nil: none

	drops dropFinder
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
			await(ctx, changes)
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
	var first error
	for ctx.Err() == nil {
		tasks, err := d.Store.Lagging(ctx, 1)
		if err != nil {
			return errors.Join(first, err)
		}
		if len(tasks) == 0 {
			return first
		}
		err = d.derive(ctx, tasks[0])
		if errors.Is(err, server.ErrStale) || errors.Is(err, server.ErrNotFound) {
			continue // somebody else has it, it has changed, or it was forgotten
		}
		if err != nil && first == nil {
			first = fmt.Errorf("derive session %q: %w", tasks[0].SessionID, err)
		}
	}
	return first
}

// await returns shortly after something was stored, or when it is time to check anyway. While idle it costs one timer.
func await(ctx context.Context, changes <-chan server.Change) {
	select {
	case <-ctx.Done():
		return
	case <-changes:
	case <-time.After(lookAgain):
		return
	}
	together := time.After(gather)
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

// derive works on a task until it is done.
func (d *Deriver) derive(ctx context.Context, task server.Task) error {
	facts, err := d.Store.SummaryOf(ctx, task.Stream)
	if err != nil {
		return err
	}
	if task.Position.Epoch == 0 {
		d.drops.drop(task.Stream) // lines may have been replaced
	}
	w := &derivation{store: d.Store, drops: &d.drops, task: task, facts: facts, clock: facts.Ended}
	for {
		step, err := w.step(ctx)
		if err != nil {
			return err
		}
		if err := d.Store.SaveDerived(ctx, step); err != nil {
			return err
		}
		if step.Done {
			return nil
		}
		w.task.Position, w.task.State = step.Position, step.State
	}
}
