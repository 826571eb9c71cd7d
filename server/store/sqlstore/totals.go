package sqlstore

import (
	"context"

	"github.com/ccship/ccship/server"
)

// totalMost is about how many rows of usage are summed up in one transaction: derivers of their owners wait.
const totalMost = 500

// total is a difference of a row of usage_totals.
type total struct {
	slot  int64
	model string
	long  bool
	sum   server.Tokens
}

func (t *total) values() []any {
	s := t.sum
	return []any{s.Answers, s.Input, s.Output, s.CacheRead, s.CacheWrite5m, s.CacheWrite1h, s.Searches}
}

const tokens = `answers, input, output, cache_read, cache_write_5m, cache_write_1h, searches`

// totals sums up some usage, and reports whether there may be more. An owner whose answers another changes is left
// out.
func (x *Sums) totals(ctx context.Context, d Dialect) (more bool, err error) {
	if leads, err := d.TryHold(ctx, HeldSums, 0); err != nil || !leads {
		return false, err
	}
	var all []total
	for owner := int64(-1); len(all) < totalMost; {
		next, err := Numbers(ctx, d,
			`SELECT s.owner FROM usage_sums s WHERE s.total = 0 AND s.owner > ? ORDER BY s.owner LIMIT 1`, owner)
		if err != nil {
			return false, err
		}
		if len(next) == 0 {
			break
		}
		owner = next[0]
		some, err := x.ofOwner(ctx, d, owner)
		if err != nil {
			return false, err
		}
		all = append(all, some...)
	}
	return len(all) >= totalMost, add(ctx, d, all)
}

// ofOwner takes what the totals lack of an owner, at most about totalMost rows of it.
func (x *Sums) ofOwner(ctx context.Context, d Dialect, owner int64) ([]total, error) {
	if free, err := d.TryHold(ctx, HeldOwner, owner); err != nil || !free {
		return nil, err
	}
	where, args := `owner = ? AND total = 0`, []any{owner}
	bound, err := Numbers(ctx, d, `SELECT slot FROM usage_sums WHERE `+where+` ORDER BY slot LIMIT 1 OFFSET ?`,
		owner, totalMost)
	if err != nil {
		return nil, err
	}
	if len(bound) > 0 {
		where, args = where+` AND slot <= ?`, append(args, bound[0])
	}
	list, err := differences(ctx, d, where, args)
	if err == nil {
		_, err = d.Exec(ctx, `UPDATE usage_sums SET total = 1, t_answers = answers, t_input = input, t_output = output,
  t_cache_read = cache_read, t_cache_write_5m = cache_write_5m, t_cache_write_1h = cache_write_1h,
  t_searches = searches
WHERE `+where, args...)
	}
	if err == nil {
		_, err = d.Exec(ctx, `DELETE FROM usage_sums WHERE owner = ? AND answers = 0 AND total = 1`, owner)
	}
	return list, err
}

// differences returns what the totals lack of rows of usage.
func differences(ctx context.Context, d Dialect, where string, args []any) ([]total, error) {
	return List(ctx, d, `
SELECT slot, model, long, CAST(sum(answers - t_answers) AS bigint), CAST(sum(input - t_input) AS bigint),
  CAST(sum(output - t_output) AS bigint), CAST(sum(cache_read - t_cache_read) AS bigint),
  CAST(sum(cache_write_5m - t_cache_write_5m) AS bigint), CAST(sum(cache_write_1h - t_cache_write_1h) AS bigint),
  CAST(sum(searches - t_searches) AS bigint)
FROM usage_sums WHERE `+where+` GROUP BY slot, model, long`, args, func(row Scanner) (t total, err error) {
		return t, row.Scan(append([]any{&t.slot, &t.model, &t.long}, TokenColumns(&t.sum)...)...)
	})
}

// add adds differences to the totals.
func add(ctx context.Context, d Dialect, list []total) error {
	for i := range list {
		t := &list[i]
		if t.sum == (server.Tokens{}) {
			continue
		}
		_, err := d.Exec(ctx, `INSERT INTO usage_totals AS t (slot, model, long, `+tokens+`)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (slot, model, long) DO UPDATE SET `+added,
			append([]any{t.slot, t.model, t.long}, t.values()...)...)
		if err != nil {
			return err
		}
	}
	_, err := d.Exec(ctx, `DELETE FROM usage_totals WHERE answers = 0`)
	return err
}

const added = `answers = t.answers + excluded.answers, input = t.input + excluded.input,
  output = t.output + excluded.output, cache_read = t.cache_read + excluded.cache_read,
  cache_write_5m = t.cache_write_5m + excluded.cache_write_5m,
  cache_write_1h = t.cache_write_1h + excluded.cache_write_1h, searches = t.searches + excluded.searches`
