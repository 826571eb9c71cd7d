package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server"
)

// replaceTextsPg makes the texts of a derivation's stretch those that it has. What is there already and the same stays.
func replaceTextsPg(ctx context.Context, tx pgx.Tx, d *server.Derivation, texts []preparedText) error {
	from := d.Task.Position.Line
	if d.Task.Position.Epoch != d.Position.Epoch || d.Task.Position.Generation != d.Position.Generation {
		from = 0
	}
	n := len(texts)
	lines, times := make([]int64, n), make([]int64, n)
	kinds, raw, indexed := make([]string, n), make([]string, n), make([]string, n)
	for i, t := range texts {
		lines[i], times[i] = t.of.Line, micros(t.of.Time)
		kinds[i], raw[i], indexed[i] = t.of.Kind, t.of.Text, t.indexed
	}
	batch := &pgx.Batch{}
	batch.Queue(`
DELETE FROM texts t WHERE stream = $1 AND epoch = $2 AND generation = $3 AND line >= $4 AND line < $5
  AND NOT EXISTS (
    SELECT FROM unnest($6::bigint[], $7::text[]) n (line, kind) WHERE n.line = t.line AND n.kind = t.kind)`,
		d.Task.Stream, d.Position.Epoch, d.Position.Generation, from, d.Position.Line, lines, kinds)
	if n > 0 {
		batch.Queue(`
INSERT INTO texts AS t (stream, epoch, generation, line, kind, time, text, indexed)
SELECT $1::bigint, $2::bigint, $3::bigint, n.line, n.kind, n.time, n.text, n.indexed
FROM unnest($4::bigint[], $5::text[], $6::bigint[], $7::text[], $8::text[]) n (line, kind, time, text, indexed)
ON CONFLICT (stream, epoch, generation, line, kind)
DO UPDATE SET time = excluded.time, text = excluded.text, indexed = excluded.indexed
WHERE t.time <> excluded.time OR t.text <> excluded.text`,
			d.Task.Stream, d.Position.Epoch, d.Position.Generation, lines, kinds, times, raw, indexed)
	}
	return tx.SendBatch(ctx, batch).Close()
}

const (
	// Of two copies in one stream the better one stays.
	pgUpsertAnswers = `
INSERT INTO answers AS a (owner, key, stream, counted, sidechain, model, time, input, output, cache_read,
  cache_write_5m, cache_write_1h)
SELECT $1::bigint, n.key, $2::bigint, false, n.sidechain, n.model, n.time, n.input, n.output, n.cache_read, n.w5, n.w1
FROM unnest($3::text[], $4::boolean[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
  $10::bigint[], $11::bigint[]) n (key, sidechain, model, time, input, output, cache_read, w5, w1)
ON CONFLICT (owner, key, stream) DO UPDATE SET sidechain = excluded.sidechain, model = excluded.model,
  time = excluded.time, input = excluded.input, output = excluded.output, cache_read = excluded.cache_read,
  cache_write_5m = excluded.cache_write_5m, cache_write_1h = excluded.cache_write_1h
WHERE (excluded.sidechain, -excluded.output) <= (a.sidechain, -a.output)`
	// Of all copies that an owner has, one counts: not a sidechain's, with the most output, the oldest stream's.
	pgCountAnswers = `
WITH best AS (
  SELECT DISTINCT ON (key) key, stream FROM answers WHERE owner = $1 AND key = ANY ($2)
  ORDER BY key, sidechain, output DESC, stream
)
UPDATE answers a SET counted = (a.stream = b.stream) FROM best b
WHERE a.owner = $1 AND a.key = b.key AND a.counted <> (a.stream = b.stream)`
)

// saveAnswersPg stores a derivation's answers and decides anew which copies count. Others of that owner wait: each
// must see the other's copies.
func saveAnswersPg(ctx context.Context, tx pgx.Tx, d *server.Derivation) error {
	answers := bestAnswers(d.Answers)
	if len(answers) == 0 {
		return nil
	}
	if err := lockTx(ctx, tx, lockOwner, d.Task.Owner); err != nil {
		return err
	}
	n := len(answers)
	keys, models, sidechain := make([]string, n), make([]string, n), make([]bool, n)
	var numbers [6][]int64
	for i, a := range answers {
		keys[i], models[i], sidechain[i] = a.Key, cleanText(a.Model), a.Sidechain
		t := a.Tokens
		for c, v := range []int64{micros(a.Time), t.Input, t.Output, t.CacheRead, t.CacheWrite5m, t.CacheWrite1h} {
			numbers[c] = append(numbers[c], v)
		}
	}
	batch := &pgx.Batch{}
	batch.Queue(pgUpsertAnswers, d.Task.Owner, d.Task.Stream, keys, sidechain, models,
		numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5])
	batch.Queue(pgCountAnswers, d.Task.Owner, keys)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("count: %w", err)
	}
	return nil
}

// bestAnswers are answers fit to be stored, of several with one key the one that would stay: one statement can't
// write a row twice.
func bestAnswers(answers []server.Answer) []server.Answer {
	out := make([]server.Answer, 0, len(answers))
	for _, a := range answers {
		a.Key, a.Tokens = cleanKey(a.Key), clampTokens(a.Tokens)
		out = append(out, a)
	}
	slices.SortStableFunc(out, func(a, b server.Answer) int { return cmp.Compare(a.Key, b.Key) })
	n := 0
	for _, a := range out {
		switch {
		case n == 0 || out[n-1].Key != a.Key:
			out[n] = a
			n++
		case !worse(a, out[n-1]):
			out[n-1] = a
		}
	}
	return out[:n]
}

func worse(a, b server.Answer) bool {
	if a.Sidechain != b.Sidechain {
		return a.Sidechain
	}
	return a.Tokens.Output < b.Tokens.Output
}
