package postgres

import (
	"context"
	"fmt"

	"github.com/ccship/ccship/server"
)

// Sizes implements server.Sizer: the whole database, whatever else is in it.
func (s *Store) Sizes(ctx context.Context) (server.Sizes, error) {
	var out server.Sizes
	err := s.pool.QueryRow(ctx, `SELECT pg_database_size(current_database()), (SELECT count(*) FROM streams)`).
		Scan(&out.Bytes, &out.Streams)
	if err != nil {
		return out, fmt.Errorf("measure store: %w", err)
	}
	return out, nil
}
