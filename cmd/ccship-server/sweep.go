package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/ccship/ccship/server"
)

// sweepEvery is the time between two searches for abandoned uploads.
const sweepEvery = 6 * time.Hour

// uploads is the part of a store that removes abandoned uploads.
type uploads interface {
	SweepBlobs(ctx context.Context, before time.Time) (int64, error)
}

// sweeper removes uploads that were started and abandoned. Several servers on one store may run one each.
type sweeper struct {
	store uploads
	log   *slog.Logger
}

// Run sweeps now and then every sweepEvery until ctx is done, which is no error. It logs failures and tries again.
func (s *sweeper) Run(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		n, err := s.store.SweepBlobs(ctx, time.Now().Add(-server.BlobPatience))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			s.log.Warn("cannot remove abandoned uploads; will retry", "error", err)
		case n > 0:
			s.log.Info("abandoned uploads removed", "uploads", n)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
