package sqlite

import (
	"context"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

const (
	// Of two copies in one stream the better one stays. An answer's only copy counts at once: a row that is changed after
	// it was added costs its indexes twice.
	upsertAnswer = `
INSERT INTO answers (owner, key, stream, counted, sidechain, model, time, input, output, cache_read, cache_write_5m,
  cache_write_1h)
VALUES (?1, ?2, ?3, NOT EXISTS (SELECT 1 FROM answers WHERE owner = ?1 AND key = ?2), ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
ON CONFLICT DO UPDATE SET sidechain = excluded.sidechain, model = excluded.model, time = excluded.time,
  input = excluded.input, output = excluded.output, cache_read = excluded.cache_read,
  cache_write_5m = excluded.cache_write_5m, cache_write_1h = excluded.cache_write_1h
WHERE (excluded.sidechain, -excluded.output) <= (sidechain, -output)`
	// Of all copies that an owner has, one counts: not a sidechain's, the most output, an agent's own, the earliest, the
	// oldest stream.
	countAnswer = `
WITH best AS MATERIALIZED (SELECT a.stream FROM answers a JOIN streams s ON s.id = a.stream
  WHERE a.owner = ?1 AND a.key = ?2
  ORDER BY a.sidechain, a.output DESC, a.sidechain AND s.parent = '', a.time, a.stream LIMIT 1)
UPDATE answers SET counted = NOT counted
WHERE owner = ?1 AND key = ?2 AND counted <> (stream = (SELECT stream FROM best))`
)

// saveAnswers stores a derivation's answers and determines again which copies count.
func saveAnswers(ctx context.Context, c executor, d *server.Derivation) error {
	if len(d.Answers) == 0 {
		return nil
	}
	for _, a := range d.Answers {
		key := sqlstore.CleanKey(a.Key)
		t := sqlstore.ClampTokens(a.Tokens)
		_, err := c.ExecContext(ctx, upsertAnswer, d.Task.Owner, key, d.Task.Stream, a.Sidechain, sqlstore.CleanText(a.Model),
			sqlstore.Micros(a.Time),
			t.Input, t.Output, t.CacheRead, t.CacheWrite5m, t.CacheWrite1h)
		if err != nil {
			return err
		}
		if _, err := c.ExecContext(ctx, countAnswer, d.Task.Owner, key); err != nil {
			return err
		}
	}
	return nil
}
