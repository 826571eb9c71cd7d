package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server"
)

// recordGroup counts a group's batches in their ledgers, in one order for all servers, so that two groups never wait
// for each other.
func (l *ledgers) recordGroup(ctx context.Context, d dialect, group []*job, done []stored) error {
	order := make([]int, 0, len(group))
	for i := range group {
		if done[i].stream != 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return compareLedgers(group[a].batch, group[b].batch) })
	for _, i := range order {
		if err := l.record(ctx, d, group[i].batch.Owner, &group[i].batch.Head, done[i].stream); err != nil {
			return err
		}
	}
	return nil
}

func compareLedgers(a, b *server.Batch) int {
	return cmp.Or(cmp.Compare(a.Owner, b.Owner), strings.Compare(a.Head.Machine, b.Head.Machine))
}

// verifyGroup answers the first *server.LedgerError that recordGroup would refuse a batch with.
func (l *ledgers) verifyGroup(ctx context.Context, d dialect, group []*job) error {
	for _, j := range group {
		if err := l.verify(ctx, d, j.batch.Owner, &j.batch.Head); err != nil {
			return err
		}
	}
	return nil
}

// checkFronts is statements.checkFront for a group. Heads are written already: an epoch that a batch began is in front.
func checkFronts(ctx context.Context, tx pgx.Tx, group []*job, done []stored) error {
	for i, j := range group {
		h, e := &j.batch.Head, &done[i].end
		if h.Writer.Incarnation == "" || done[i].stream == 0 {
			continue
		}
		if e.front && !e.first {
			if h.Generation == e.generation && h.RewoundTo != e.rewound {
				return &server.StreamError{Code: server.StreamOtherBytes, Epoch: h.Epoch, Generation: e.generation,
					Line: min(h.RewoundTo, e.rewound)}
			}
			continue
		}
		front := &server.StreamError{Code: server.StreamOtherEpoch}
		err := tx.QueryRow(ctx, `
SELECT e.name, g.generation, greatest(g.end_line, g.rewound_to)
FROM epochs e JOIN generations g ON g.stream = e.stream AND g.epoch = e.rank
WHERE e.stream = $1 AND e.rank <> $2 ORDER BY e.rank DESC, g.generation DESC LIMIT 1`, done[i].stream, e.epoch).
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
