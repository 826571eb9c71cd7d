package upkeep

import (
	"context"
	"log/slog"
	"time"

	"github.com/ccship/ccship/server"
)

// sumEvery is how often what changed is put into sums. Until then each reader of a sum adds it.
const sumEvery = 30 * time.Second

// Summer keeps sums of what is stored. Of several servers on one store one does it at a time.
type Summer struct {
	Store server.Summer
	Log   *slog.Logger
}

// Run sums up now and then until ctx is done. It logs failures, the same one once, and tries again.
func (s *Summer) Run(ctx context.Context) error {
	said := ""
	return every(ctx, sumEvery, func() {
		more, err := true, error(nil)
		for more && err == nil && ctx.Err() == nil {
			more, err = s.Store.SumUp(ctx)
		}
		switch {
		case ctx.Err() != nil:
		case err == nil:
			said = ""
		case err.Error() != said:
			said = err.Error()
			s.Log.Warn("cannot sum up; it is tried again, and answers are right but slow", "error", err)
		}
	})
}
