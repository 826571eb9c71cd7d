package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server/store/lines"

	"github.com/ccship/ccship/server/store/search"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// maskDatabase implements masks.Database.
type maskDatabase struct{ s *Store }

// Write implements masks.Database. PostgreSQL keeps removed bytes in its files until it vacuums.
func (m maskDatabase) Write(ctx context.Context, fn func(sqlstore.Dialect) error) error {
	return m.s.Tier.Retry(ctx, func() error {
		return m.s.inBackground(ctx, func(tx pgx.Tx) error { return fn(dialect{tx}) })
	})
}

// ClearDerived implements masks.Database.
func (m maskDatabase) ClearDerived(ctx context.Context, d sqlstore.Dialect, owner, stream int64) error {
	return search.ClearMasked(ctx, d, sqlstore.OwnedStream{Owner: owner, Stream: stream})
}

// Scrub implements masks.Database. What PostgreSQL removed is overwritten when it vacuums.
func (m maskDatabase) Scrub(ctx context.Context, _ func(done, total int64)) error {
	return m.s.texts.Purge(ctx)
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
		if err := noteRetired(ctx, tx, at, group[i].Batch.Retired); err != nil {
			return err
		}
		if err := s.Note(ctx, dialect{tx}, at, list); err != nil {
			return fmt.Errorf("write lines: %w", err)
		}
	}
	return nil
}
