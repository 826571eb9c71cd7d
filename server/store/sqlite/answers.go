package sqlite

import (
	"context"
	"strings"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

const (
	insertAnswers = `
INSERT INTO answers (owner, key, stream, counted, sidechain, model, time, input, output, cache_read, cache_write_5m,
  cache_write_1h, searches) VALUES `
	newAnswer = `(?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	// mostAnswers is how many new answers one statement adds; fewer are added in quarters of it: few statements are
	// compiled.
	mostAnswers = 64
	// Of two copies in one stream the better one stays. An answer's only copy counts at once: a row that is changed after
	// it was added costs its indexes twice.
	upsertAnswer = `
INSERT INTO answers (owner, key, stream, counted, sidechain, model, time, input, output, cache_read, cache_write_5m,
  cache_write_1h, searches)
VALUES (?1, ?2, ?3, NOT EXISTS (SELECT 1 FROM answers WHERE owner = ?1 AND key = ?2), ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,
  ?12)
ON CONFLICT DO UPDATE SET sidechain = excluded.sidechain, model = excluded.model, time = excluded.time,
  input = excluded.input, output = excluded.output, cache_read = excluded.cache_read,
  cache_write_5m = excluded.cache_write_5m, cache_write_1h = excluded.cache_write_1h, searches = excluded.searches
WHERE (excluded.sidechain, -excluded.output,
  -(excluded.input + excluded.cache_read + excluded.cache_write_5m + excluded.cache_write_1h), excluded.time)
  <= (sidechain, -output, -(input + cache_read + cache_write_5m + cache_write_1h), time)`
	// Of all copies that an owner has, one counts: not a sidechain's, the most output, an agent's own, the earliest, that
	// of the session before those of its copies, the oldest stream.
	countAnswer = `
WITH best AS MATERIALIZED (SELECT a.stream FROM answers a JOIN streams s ON s.id = a.stream
  LEFT JOIN facts f ON f.owner = a.owner AND f.stream = a.stream WHERE a.owner = ?1 AND a.key = ?2
  ORDER BY a.sidechain, a.output DESC, a.sidechain AND s.parent = '', a.time, coalesce(f.copy, 0), a.stream LIMIT 1)
UPDATE answers SET counted = NOT counted
WHERE owner = ?1 AND key = ?2 AND counted <> (stream = (SELECT stream FROM best))`
)

// saveAnswers stores a derivation's answers and determines again which copies count. Those that are new to their owner
// all count. One statement adds many of them: it touches the pages of the sums, which triggers keep, once.
func saveAnswers(ctx context.Context, c executor, d *server.Derivation) error {
	if len(d.Answers) == 0 {
		return nil
	}
	fresh, others, err := newAnswers(ctx, c, d)
	if err != nil {
		return err
	}
	for n := mostAnswers; n > 0; n /= 4 {
		query := insertAnswers + strings.TrimSuffix(strings.Repeat(newAnswer+", ", n), ", ")
		for ; len(fresh) >= n; fresh = fresh[n:] {
			var args []any
			for _, a := range fresh[:n] {
				args = append(args, a...)
			}
			if _, err := c.ExecContext(ctx, query, args...); err != nil {
				return err
			}
		}
	}
	for _, args := range others {
		if _, err := c.ExecContext(ctx, upsertAnswer, args...); err != nil {
			return err
		}
		if _, err := c.ExecContext(ctx, countAnswer, args[:2]...); err != nil {
			return err
		}
	}
	return nil
}

// newAnswers are the values of a derivation's answers: of those whose keys the owner does not have yet, and of others.
func newAnswers(ctx context.Context, c executor, d *server.Derivation) (fresh, others [][]any, err error) {
	keys := make([]string, len(d.Answers))
	for i, a := range d.Answers {
		keys[i] = sqlstore.CleanKey(a.Key)
	}
	known := map[string]bool{}
	err = dialect{c}.Query(ctx, `
SELECT j.value FROM json_each(?1) j WHERE EXISTS (SELECT 1 FROM answers WHERE owner = ?2 AND key = j.value)`,
		[]any{jsonList(keys), d.Task.Owner}, func(row sqlstore.Scanner) error {
			var key string
			err := row.Scan(&key)
			known[key] = true
			return err
		})
	if err != nil {
		return nil, nil, err
	}
	for i, a := range d.Answers {
		t := sqlstore.ClampTokens(a.Tokens)
		args := []any{d.Task.Owner, keys[i], d.Task.Stream, a.Sidechain, sqlstore.CleanText(a.Model),
			sqlstore.Micros(a.Time), t.Input, t.Output, t.CacheRead, t.CacheWrite5m, t.CacheWrite1h, t.Searches}
		if known[keys[i]] {
			others = append(others, args)
			continue
		}
		known[keys[i]] = true // keys can become alike
		fresh = append(fresh, args)
	}
	return fresh, others, nil
}
