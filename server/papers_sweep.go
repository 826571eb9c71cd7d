package server

import (
	"context"
	"log/slog"
	"time"
)

// sweepEvery is how often abandoned uploads are looked for.
const sweepEvery = 6 * time.Hour

// Sweeper removes uploads that were begun and given up. Several may run at once.
type Sweeper struct {
	Store PaperIngester
	Log   *slog.Logger
}

// Run sweeps now and then until ctx is done, which is no error. Failures are logged and tried again.
func (s *Sweeper) Run(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		n, err := s.Store.SweepBlobs(ctx, time.Now().Add(-BlobPatience))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			s.Log.Warn("abandoned uploads can't be removed; it is tried again", "error", err)
		case n > 0:
			s.Log.Info("abandoned uploads removed", "uploads", n)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
