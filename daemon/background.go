package daemon

import (
	"context"
	"errors"
	"time"
)

// backgroundJobs does work that may be late and may take long, until ctx is done: it tells servers to forget sessions,
// and asks them which lines rewrites removed from transcripts.
func (d *Daemon) backgroundJobs(ctx context.Context) error {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	const wait = time.Minute // after a server could not be reached
	var notBefore time.Time
	for {
		select {
		case <-ctx.Done():
			return d.rewrites.Store(context.WithoutCancel(ctx), time.Now())
		case <-tick.C:
		}
		now := time.Now()
		if err := d.rewrites.Store(ctx, now); err != nil {
			d.log.Warn("cannot store the list of rewrites; retrying", "err", err)
		}
		if now.Before(notBefore) {
			continue
		}
		if errors.Join(d.forgetter.Settle(ctx, now.Round(0)), d.counter.Count(ctx, now)) != nil {
			notBefore = time.Now().Add(wait)
		}
	}
}
