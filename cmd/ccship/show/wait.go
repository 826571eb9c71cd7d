package show

import (
	"context"
	"errors"
	"time"

	"github.com/ccship/ccship/daemon/control"
)

// Sleep waits for d, or for the end of ctx, which is its error.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Temporary says that a daemon seen before may come back: it is being restarted, or is too busy to answer.
func Temporary(err error) bool {
	var known *control.Error
	return errors.As(err, &known) && known.Retryable
}
