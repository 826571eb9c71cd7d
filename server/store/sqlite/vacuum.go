package sqlite

import (
	"context"
	"fmt"
)

// Vacuum implements server.Retention. It writes the file anew without its free pages, and empties the log. A caller
// that stores waits.
func (s *Store) Vacuum(ctx context.Context, _ bool) error {
	select {
	case s.queue.Lead <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	_, err := s.conn.ExecContext(ctx, `VACUUM`)
	<-s.queue.Lead
	if err != nil {
		return fmt.Errorf("give space back: %w", err)
	}
	s.emptyLog(ctx)
	return nil
}
