package sqlite

import (
	"context"
	"fmt"
)

// Vacuum implements server.Retention. It writes the file anew without its free pages, and empties the log. A caller
// that stores waits.
func (s *Store) Vacuum(ctx context.Context, _ bool) error {
	err := s.leading(ctx, func(context.Context) error {
		_, err := s.conn.ExecContext(ctx, `VACUUM`)
		return err
	})
	if err != nil {
		return fmt.Errorf("give space back: %w", err)
	}
	s.emptyLog(ctx)
	return nil
}
