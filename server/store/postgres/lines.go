package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server/store/lines"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// writeLines writes the lines of a group, and their generations, in one round trip, after a look at what is there of
// lines that may be stored. Lines that the server has masked get their tokens again.
func (s *Store) writeLines(ctx context.Context, tx pgx.Tx, group []*lines.Job, done []stored) error {
	batch, again := &pgx.Batch{}, make([][]int64, len(group))
	d := queueing{dialect: dialect{tx}, batch: batch}
	for i, j := range group {
		x := &done[i]
		if x.Stream == 0 {
			continue
		}
		now, list, err := s.Known(ctx, d, x.Stream, x.Masked, j)
		if err == nil {
			again[i] = list
			x.written, err = s.lines.Put(ctx, d, x.place(j), x.To, now)
		}
		if err != nil {
			return err
		}
	}
	queueGenerations(batch, group, done)
	for i, j := range group {
		if done[i].Stream == 0 {
			continue
		}
		if err := s.Settle(ctx, d, done[i].place(j), j.Batch, again[i]); err != nil {
			return err
		}
	}
	if batch.Len() == 0 {
		return nil
	}
	return sqlstore.Wrap(tx.SendBatch(ctx, batch).Close(), "write lines")
}
