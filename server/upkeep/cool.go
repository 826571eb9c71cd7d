package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ccship/ccship/server"
)

const (
	// removeEvery is how long it takes at most until what was forgotten is removed from cold storage.
	removeEvery = time.Minute
	// coolEvery is the longest time between two looks for what became old.
	coolEvery = 10 * time.Minute
)

// Cooler moves what is old to cold storage, and removes from there what is not used any more.
type Cooler struct {
	Store server.Cooler
	Log   *slog.Logger
	After time.Duration // what is older is moved; 0: nothing
}

// Run moves and removes until ctx is done. It logs failures, the same one once, and tries again.
func (c *Cooler) Run(ctx context.Context) error {
	var looked time.Time
	said := ""
	pause := min(removeEvery, c.interval())
	return every(ctx, pause, func() {
		err := c.Store.Sweep(ctx)
		if err == nil && c.After > 0 && time.Since(looked) >= c.interval() {
			looked = time.Now()
			err = c.cool(ctx)
		}
		switch {
		case ctx.Err() != nil:
		case err == nil:
			said = ""
		case err.Error() != said:
			said = err.Error()
			c.Log.Warn("cannot use cold storage; it is tried again, and nothing is lost", "err", err)
		}
	})
}

// interval is the time between two looks for what became old: a small part of the age.
func (c *Cooler) interval() time.Duration {
	if c.After <= 0 {
		return removeEvery
	}
	return min(coolEvery, max(c.After/10, time.Second))
}

func (c *Cooler) cool(ctx context.Context) error {
	done, err := c.Store.Cool(ctx, time.Now().Add(-c.After))
	if done.Objects > 0 {
		c.Log.Info("moved to cold storage", "objects", done.Objects, "bytes", done.Bytes)
	}
	if err != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
