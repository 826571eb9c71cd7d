package postgres

import (
	"cmp"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

const (
	// Of two copies in one stream the better one stays. An answer's only copy counts at once: a row that is changed after
	// it was added takes its place twice. NOT EXISTS might be answered by reading all answers of the owner.
	upsertAnswers = `
INSERT INTO answers AS a (owner, key, stream, counted, sidechain, model, time, input, output, cache_read,
  cache_write_5m, cache_write_1h, searches)
SELECT $1::bigint, n.key, n.stream,
  coalesce((SELECT false FROM answers o WHERE o.owner = $1 AND o.key = n.key LIMIT 1), true), n.sidechain,
  n.model, n.time, n.input, n.output, n.cache_read, n.w5, n.w1, n.searches
FROM unnest($2::bigint[], $3::text[], $4::boolean[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
  $10::bigint[], $11::bigint[], $12::bigint[])
  n (stream, key, sidechain, model, time, input, output, cache_read, w5, w1, searches)
ON CONFLICT (owner, key, stream) DO UPDATE SET sidechain = excluded.sidechain, model = excluded.model,
  time = excluded.time, input = excluded.input, output = excluded.output, cache_read = excluded.cache_read,
  cache_write_5m = excluded.cache_write_5m, cache_write_1h = excluded.cache_write_1h, searches = excluded.searches
WHERE (excluded.sidechain, -excluded.output,
  -(excluded.input + excluded.cache_read + excluded.cache_write_5m + excluded.cache_write_1h), excluded.time)
  <= (a.sidechain, -a.output, -(a.input + a.cache_read + a.cache_write_5m + a.cache_write_1h), a.time)`
	// Of all copies that an owner has, one counts: not a sidechain's, the most output, an agent's own, the earliest, that
	// of the session before those of its copies, the oldest stream.
	countAnswers = `
UPDATE answers a SET counted = r.best
FROM (
  SELECT n.key, n.stream, n.counted, row_number() OVER (PARTITION BY n.key
    ORDER BY n.sidechain, n.output DESC,
      n.sidechain AND (SELECT s.parent = '' FROM streams s WHERE s.owner = n.owner AND s.id = n.stream),
      n.time, coalesce((SELECT f.copy FROM facts f WHERE f.owner = n.owner AND f.stream = n.stream), 0), n.stream
  ) = 1 AS best
  FROM answers n WHERE n.owner = $1 AND n.key = ANY ($2)
) r
WHERE r.counted <> r.best AND a.owner = $1 AND a.key = r.key AND a.stream = r.stream`
)

// queueAnswers stores the answers of derivations, which are in the order of their owners, and decides anew which copies
// count. Others of those owners wait: each must see the other's copies.
func queueAnswers(batch *pgx.Batch, list []*server.Derivation) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].Task.Owner == list[0].Task.Owner {
			n++
		}
		queueAnswersOf(batch, list[0].Task.Owner, list[:n])
		list = list[n:]
	}
}

// queueAnswersOf does so for derivations of one owner, each of another stream.
func queueAnswersOf(batch *pgx.Batch, owner int64, list []*server.Derivation) {
	var keys, models []string
	var sidechain []bool
	var numbers [8][]int64
	for _, d := range list {
		for _, a := range bestAnswers(d.Answers) {
			keys, models = append(keys, a.Key), append(models, sqlstore.CleanText(a.Model))
			sidechain = append(sidechain, a.Sidechain)
			t := a.Tokens
			for c, v := range []int64{d.Task.Stream, sqlstore.Micros(a.Time), t.Input, t.Output, t.CacheRead, t.CacheWrite5m,
				t.CacheWrite1h, t.Searches} {
				numbers[c] = append(numbers[c], v)
			}
		}
	}
	if len(keys) == 0 {
		return
	}
	batch.Queue(`SELECT pg_advisory_xact_lock($1, $2)`, int32(sqlstore.HeldOwner), int32(owner))
	batch.Queue(upsertAnswers, owner, numbers[0], keys, sidechain, models,
		numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6], numbers[7])
	batch.Queue(countAnswers, owner, keys)
}

// bestAnswers are answers fit to be stored, of several with one key the one that would stay: one statement can't
// write a row twice.
func bestAnswers(answers []server.Answer) []server.Answer {
	out := make([]server.Answer, 0, len(answers))
	for _, a := range answers {
		a.Key, a.Tokens = sqlstore.CleanKey(a.Key), sqlstore.ClampTokens(a.Tokens)
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

// worse reports whether b stays where a has the same key, as the statement above decides.
func worse(a, b server.Answer) bool {
	switch x, y := a.Tokens.All(), b.Tokens.All(); {
	case a.Sidechain != b.Sidechain:
		return a.Sidechain
	case a.Tokens.Output != b.Tokens.Output:
		return a.Tokens.Output < b.Tokens.Output
	case x != y:
		return x < y
	}
	return b.Time.Before(a.Time)
}
