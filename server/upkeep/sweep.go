package upkeep

import (
	"context"
	"log/slog"
	"time"

	"github.com/ccship/ccship/server"
)

// sweepEvery is the time between two searches for abandoned uploads.
const sweepEvery = 6 * time.Hour

// Uploads is the part of a store that removes abandoned uploads.
type Uploads interface {
	SweepBlobs(ctx context.Context, before time.Time) (int64, error)
}

// Sweeper removes uploads that were started and abandoned.
type Sweeper struct {
	Store Uploads
	Log   *slog.Logger
}

// Run sweeps now and then until ctx is done. It logs failures and tries again.
func (s *Sweeper) Run(ctx context.Context) error {
	return every(ctx, sweepEvery, func() {
		n, err := s.Store.SweepBlobs(ctx, time.Now().Add(-server.BlobPatience))
		switch {
		case ctx.Err() != nil:
		case err != nil:
			s.Log.Warn("cannot remove abandoned uploads; will retry", "error", err)
		case n > 0:
			s.Log.Info("abandoned uploads removed", "uploads", n)
		}
	})
}
