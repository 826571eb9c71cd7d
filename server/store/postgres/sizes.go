package postgres

import (
	"context"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// Sizes implements server.Sizer: the whole database, whatever else is in it.
func (s *Store) Sizes(ctx context.Context) (server.Sizes, error) {
	var out server.Sizes
	err := s.pool.QueryRow(ctx, `SELECT pg_database_size(current_database()), (SELECT count(*) FROM streams)`).
		Scan(&out.Bytes, &out.Streams)
	return out, sqlstore.Wrap(err, "measure store")
}
