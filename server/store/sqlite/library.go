package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// Received implements server.Library.
func (s *Store) Received(ctx context.Context, stream, epoch, generation, line int64) (time.Time, error) {
	at := lines.Place{Stream: stream, Epoch: epoch, Generation: generation}
	if err := s.read.QueryRowContext(ctx, `SELECT owner FROM streams WHERE id = ?`, stream).Scan(&at.Owner); err != nil {
		return time.Time{}, fmt.Errorf("look up line %d: %w", line, translate(err))
	}
	l, ok, err := s.held.Facts(ctx, dialect{s.read}, at, line)
	if err == nil && !ok {
		err = server.ErrNotFound
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("look up line %d: %w", line, err)
	}
	return sqlstore.Moment(l.Received), nil
}
