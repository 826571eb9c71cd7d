package postgres

import (
	"context"

	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// verifyGroup answers the first *server.LedgerError that a batch would be refused with.
func verifyGroup(ctx context.Context, l *sqlstore.Ledgers, d sqlstore.Dialect, group []*lines.Job) error {
	for _, j := range group {
		if err := l.CheckWrite(ctx, d, j.Batch.Owner, &j.Batch.Head); err != nil {
			return err
		}
	}
	return nil
}

// checkFronts is End.CheckFront for a group.
func checkFronts(ctx context.Context, d sqlstore.Dialect, group []*lines.Job, done []stored) error {
	for i, j := range group {
		if done[i].Stream == 0 {
			continue
		}
		of := sqlstore.OwnedStream{Stream: done[i].Stream, Owner: j.Batch.Owner}
		if err := done[i].End.CheckFront(ctx, d, of, &j.Batch.Head); err != nil {
			return err
		}
	}
	return nil
}
