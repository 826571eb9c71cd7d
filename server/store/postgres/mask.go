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
	now, again := group, make([][]int64, len(group))
	for i, j := range group {
		if done[i].Stream == 0 || done[i].Masked == 0 && len(j.Batch.Masked) == 0 {
			continue
		}
		b, list, err := s.Again(ctx, dialect{tx}, done[i].Stream, j.Batch)
		if err != nil {
			return err
		}
		if len(list) > 0 {
			if &now[0] == &group[0] {
				now = append([]*lines.Job(nil), group...)
			}
			now[i], again[i] = &lines.Job{Batch: b}, list // what was packed lacks the tokens
			if b == j.Batch {
				now[i].Blocks = j.Blocks
			}
		}
	}
	if err := s.writeLines(ctx, tx, now, done); err != nil {
		return err
	}
	for i, list := range again {
		at := lines.Place{Owner: group[i].Batch.Owner, Stream: done[i].Stream, Epoch: done[i].End.Epoch,
			Generation: group[i].Batch.Head.Generation}
		for _, r := range group[i].Batch.Retired {
			if err := lines.InsertRetired(ctx, dialect{tx}, at, r); err != nil {
				return err
			}
		}
		if err := s.Note(ctx, dialect{tx}, at, list); err != nil {
			return fmt.Errorf("write lines: %w", err)
		}
	}
	return nil
}
