package postgres

import (
	"context"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// Scrub implements server.Masker. What PostgreSQL removed is overwritten when it vacuums.
func (s *Store) Scrub(ctx context.Context, _ func(done, total int64)) error {
	err := s.Index.Purge(ctx)
	if err == nil {
		_, err = s.pool.Exec(ctx, `DELETE FROM leases WHERE name = 'scrub'`)
	}
	return sqlstore.Wrap(err, "overwrite what was masked")
}
