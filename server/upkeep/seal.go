package upkeep

import (
	"context"
	"log/slog"
	"time"

	"github.com/ccship/ccship/server"
)

const (
	// sealEvery is how long it takes until lines that fill a block are packed.
	sealEvery = 30 * time.Second
	// sealIdle is how long a transcript must not grow until all of it is packed.
	sealIdle = 10 * time.Minute
)

// Sealer packs lines that came alive.
type Sealer struct {
	Store server.Sealer
	Log   *slog.Logger
}

// Run packs lines until ctx is done.
func (s *Sealer) Run(ctx context.Context) error {
	return every(ctx, sealEvery, func() {
		n, err := s.Store.Seal(ctx, time.Now().Add(-sealIdle))
		switch {
		case ctx.Err() != nil:
		case err != nil:
			s.Log.Warn("cannot pack stored lines; it is tried again", "err", err)
		case n > 0:
			s.Log.Debug("packed stored lines", "blocks", n)
		}
	})
}

// every calls fn at once, and then at intervals until ctx is done.
func every(ctx context.Context, interval time.Duration, fn func()) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		fn()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
