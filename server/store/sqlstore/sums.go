package sqlstore

import (
	"context"
)

// Sums are the sums of a database. Safe for concurrent use.
type Sums struct{ db Writer }

// NewSums returns the sums of a database.
func NewSums(db DB) *Sums { return &Sums{Writer{db, Lazy}} }

// foldMost is how many streams are summed up in one transaction: it holds up their writers.
const foldMost = 200

// SumUp implements server.Summer. Streams and usage are summed up in transactions of their own, for others lock them in
// another order.
func (x *Sums) SumUp(ctx context.Context) (more bool, err error) {
	var streams, usage bool
	err = x.db.Query(ctx, `SELECT EXISTS (SELECT 1 FROM streams s WHERE s.summed < 0)
  OR EXISTS (SELECT 1 FROM project_sums p WHERE p.newest = 0), EXISTS (SELECT 1 FROM usage_sums s WHERE s.total = 0)`,
		nil, func(row Scanner) error { return row.Scan(&streams, &usage) })
	part := func(some bool, do func(context.Context, Dialect) (bool, error)) {
		if err != nil || !some {
			return
		}
		again := false
		err = x.db.Write(ctx, func(d Dialect) error {
			again, err = do(ctx, d)
			return err
		})
		more = more || again
	}
	part(streams, x.fold)
	part(usage, x.totals)
	return more, Wrap(err, "sum up")
}

// fold sums up some of what changed, and reports whether there may be more.
func (x *Sums) fold(ctx context.Context, d Dialect) (more bool, err error) {
	leads, err := d.TryHold(ctx, HeldSums, 0)
	if err != nil || !leads {
		return false, err
	}
	var ids []int64
	err = d.SkipLocked(ctx, `SELECT s.id FROM streams s WHERE s.summed < 0 ORDER BY s.owner, s.id LIMIT ?`,
		[]any{foldMost}, func(row Scanner) error {
			var id int64
			err := row.Scan(&id)
			ids = append(ids, id)
			return err
		})
	if err != nil {
		return false, err
	}
	// A second question: what others had not committed while a row was waited for is seen only by it.
	var list []stream
	if len(ids) > 0 {
		var f Filter
		f.Add(`s.id IN (`+Marks(len(ids))+`)`, Values(ids)...)
		if list, err = x.streams(ctx, d, f); err != nil {
			return false, err
		}
	}
	groups := tally(list)
	if err := addGroupsWithoutNewest(ctx, d, groups, Filter{}); err != nil {
		return false, err
	}
	if err := saveGroups(ctx, d, groups); err != nil {
		return false, err
	}
	for i := range list {
		if err := list[i].summed(ctx, d); err != nil {
			return false, err
		}
	}
	return len(ids) == foldMost, nil
}
