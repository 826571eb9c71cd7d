package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server"
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

// checkFronts refuses what sqlite's checkFront refuses, for a group. An epoch that a batch began is in front already.
func checkFronts(ctx context.Context, tx pgx.Tx, group []*lines.Job, done []stored) error {
	for i, j := range group {
		h, e := &j.Batch.Head, &done[i].End
		if h.Writer.Incarnation == "" || done[i].Stream == 0 {
			continue
		}
		if e.Front && !e.First {
			if h.Generation == e.Generation && h.RewoundTo != e.Rewound {
				return &server.StreamError{Code: server.StreamOtherBytes, Epoch: h.Epoch, Generation: e.Generation,
					Line: min(h.RewoundTo, e.Rewound)}
			}
			continue
		}
		front := &server.StreamError{Code: server.StreamOtherEpoch}
		err := tx.QueryRow(ctx, `
SELECT e.name, g.generation, greatest(g.end_line, g.rewound_to)
FROM epochs e JOIN generations g ON g.owner = e.owner AND g.stream = e.stream AND g.epoch = e.rank
WHERE e.owner = $1 AND e.stream = $2 AND e.rank <> $3
ORDER BY e.rank DESC, g.generation DESC LIMIT 1`, j.Batch.Owner, done[i].Stream, e.Epoch).
			Scan(&front.Epoch, &front.Generation, &front.Line)
		if errors.Is(err, pgx.ErrNoRows) {
			continue
		}
		if err != nil {
			return fmt.Errorf("find the epoch in front: %w", err)
		}
		return front
	}
	return nil
}
