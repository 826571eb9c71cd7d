package store

import (
	"context"
	"database/sql"

	"github.com/ccship/ccship/server"
)

const (
	// Of two copies in one stream the better one stays.
	upsertAnswer = `
INSERT INTO answers (owner, key, stream, counted, sidechain, model, time, input, output, cache_read, cache_write_5m,
  cache_write_1h)
VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
ON CONFLICT DO UPDATE SET sidechain = excluded.sidechain, model = excluded.model, time = excluded.time,
  input = excluded.input, output = excluded.output, cache_read = excluded.cache_read,
  cache_write_5m = excluded.cache_write_5m, cache_write_1h = excluded.cache_write_1h
WHERE (excluded.sidechain, -excluded.output) <= (sidechain, -output)`
	// Of all copies that an owner has, one counts: not a sidechain's, with the most output, of the oldest stream.
	countAnswer = `
UPDATE answers SET counted = (stream = (SELECT stream FROM answers WHERE owner = ?1 AND key = ?2
  ORDER BY sidechain, output DESC, stream LIMIT 1))
WHERE owner = ?1 AND key = ?2`
	// maxTokens limits the tokens of one answer, so that no sum overflows. maxKey limits its key, in bytes.
	maxTokens = 1 << 40
	maxKey    = 512
)

// saveAnswers stores a derivation's answers and determines again which copies count.
func saveAnswers(ctx context.Context, c *sql.Conn, d *server.Derivation) error {
	if len(d.Answers) == 0 {
		return nil
	}
	upsert, err := c.PrepareContext(ctx, upsertAnswer)
	if err != nil {
		return err
	}
	defer upsert.Close()
	count, err := c.PrepareContext(ctx, countAnswer)
	if err != nil {
		return err
	}
	defer count.Close()
	for _, a := range d.Answers {
		key := cleanKey(a.Key)
		t := clampTokens(a.Tokens)
		_, err := upsert.ExecContext(ctx, d.Task.Owner, key, d.Task.Stream, a.Sidechain, cleanText(a.Model), micros(a.Time),
			t.Input, t.Output, t.CacheRead, t.CacheWrite5m, t.CacheWrite1h)
		if err != nil {
			return err
		}
		if _, err := count.ExecContext(ctx, d.Task.Owner, key); err != nil {
			return err
		}
	}
	return nil
}

func cleanKey(key string) string {
	if len(key) > maxKey {
		key = key[:maxKey]
	}
	return cleanText(key)
}

func clampTokens(t server.Tokens) server.Tokens {
	for _, n := range []*int64{&t.Input, &t.Output, &t.CacheRead, &t.CacheWrite5m, &t.CacheWrite1h} {
		*n = min(max(*n, 0), maxTokens)
	}
	return t
}
