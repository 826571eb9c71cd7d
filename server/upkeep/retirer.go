package upkeep

import (
	"context"
	"log/slog"
	"time"

	"github.com/ccship/ccship/server"
)

// retireLook is the longest time between two looks whether the rules of retention are due.
const retireLook = 10 * time.Minute

// Retirer applies the rules of retention. Of several servers on one store one does it.
type Retirer struct {
	Store server.Retention
	Log   *slog.Logger
	Every time.Duration // how long the rules rest between two applications; 0: nothing applies them
}

// Run applies the rules now and then until ctx is done. What is interrupted goes on at the next look.
func (r *Retirer) Run(ctx context.Context) error {
	if r.Every <= 0 {
		<-ctx.Done()
		return nil
	}
	said := ""
	return every(ctx, min(retireLook, max(r.Every/4, 100*time.Millisecond)), func() {
		done, err := r.Store.Retire(ctx, server.Retiring{By: "ccship-server", Now: time.Now(), Every: r.Every})
		for _, n := range done.Counts {
			r.Log.Info("rule of retention applied", "rule", n.Rule, "user", n.User, "sessions", n.Sessions, "lines", n.Lines,
				"files", n.Files, "bytes", n.Bytes)
		}
		switch {
		case ctx.Err() != nil:
		case err == nil:
			said = ""
		case err.Error() != said:
			said = err.Error()
			r.Log.Warn("cannot apply the rules of retention; it is tried again, and nothing is lost", "error", err)
		}
	})
}
