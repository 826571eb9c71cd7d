package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server/store/lines"
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

// writeKnown is writeLines; lines that the server has masked get their tokens again.
func (s *Store) writeKnown(ctx context.Context, tx pgx.Tx, group []*lines.Job, done []stored) error {
	now, again := make([]*lines.Job, len(group)), make([][]int64, len(group))
	for i, j := range group {
		var err error
		if now[i] = j; done[i].Stream != 0 {
			now[i], again[i], err = s.Known(ctx, dialect{tx}, done[i].Stream, done[i].Masked, j)
		}
		if err != nil {
			return err
		}
	}
	if err := s.writeLines(ctx, tx, now, done); err != nil {
		return err
	}
	for i, j := range group {
		if done[i].Stream == 0 {
			continue
		}
		if err := s.Settle(ctx, dialect{tx}, done[i].place(j), j.Batch, again[i]); err != nil {
			return fmt.Errorf("write lines: %w", err)
		}
	}
	return nil
}
