package sqlstore

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/ccship/ccship/server"
)

const (
	// Of two copies in one stream the better one stays. An answer's only copy counts at once: a row that is changed after
	// it was added costs its indexes twice. NOT EXISTS might be answered by reading all answers of the owner.
	beginAnswers = `
INSERT INTO answers AS a (owner, key, stream, counted, sidechain, model, time, input, output, cache_read,
  cache_write_5m, cache_write_1h, searches)
SELECT v.column1, v.column2, v.column3,
  coalesce((SELECT false FROM answers o WHERE o.owner = v.column1 AND o.key = v.column2 LIMIT 1), true),
  v.column4, v.column5, v.column6, v.column7, v.column8, v.column9, v.column10, v.column11, v.column12
FROM (VALUES (CAST(? AS bigint), CAST(? AS text), CAST(? AS bigint), CAST(? AS boolean), CAST(? AS text),
  CAST(? AS bigint), CAST(? AS bigint), CAST(? AS bigint), CAST(? AS bigint), CAST(? AS bigint), CAST(? AS bigint),
  CAST(? AS bigint))`
	nextAnswer = `, (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	endAnswers = `) v WHERE v.column1 IS NOT NULL
ON CONFLICT (owner, stream, key) DO UPDATE SET sidechain = excluded.sidechain, model = excluded.model,
  time = excluded.time, input = excluded.input, output = excluded.output, cache_read = excluded.cache_read,
  cache_write_5m = excluded.cache_write_5m, cache_write_1h = excluded.cache_write_1h, searches = excluded.searches
WHERE (excluded.sidechain, -excluded.output,
  -(excluded.input + excluded.cache_read + excluded.cache_write_5m + excluded.cache_write_1h), excluded.time)
  <= (a.sidechain, -a.output, -(a.input + a.cache_read + a.cache_write_5m + a.cache_write_1h), a.time)`
	answersAtOnce = 256
)

// SaveAnswers stores the answers of derivations of one owner, each of another stream, and decides anew which copies
// count. Others of that owner wait: each must see the other's copies. One statement adds many answers: it touches the
// pages of the sums, which triggers keep, once.
func SaveAnswers(ctx context.Context, d Dialect, owner int64, list []*server.Derivation) error {
	var rows [][]any
	var keys []string
	for _, x := range list {
		for _, a := range bestAnswers(x.Answers) {
			t := a.Tokens
			rows = append(rows, []any{owner, a.Key, x.Task.Stream, a.Sidechain, a.Model, Micros(a.Time), t.Input, t.Output,
				t.CacheRead, t.CacheWrite5m, t.CacheWrite1h, t.Searches})
			keys = append(keys, a.Key)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if err := d.Hold(ctx, HeldOwner, owner); err != nil {
		return err
	}
	for part := range slices.Chunk(rows, answersAtOnce) {
		n := fewer(len(part))
		args := make([]any, n*len(part[0])) // rows of NULL at the end, so that few statements are compiled
		for i, row := range part {
			copy(args[i*len(row):], row)
		}
		if _, err := d.Exec(ctx, beginAnswers+strings.Repeat(nextAnswer, n-1)+endAnswers, args...); err != nil {
			return err
		}
	}
	return countAnswers(ctx, d, owner, keys)
}

// countAnswers has one copy count of all that an owner has of an answer: not a sidechain's, the most output, an agent's
// own, the earliest, that of the session before those of its copies, the oldest stream.
func countAnswers(ctx context.Context, d Dialect, owner int64, keys []string) error {
	slices.Sort(keys)
	keys = slices.Compact(keys) // of a key that is there twice, no copy would be the only best
	for part := range slices.Chunk(keys, answersAtOnce) {
		n := fewer(len(part))
		args := make([]any, 1+n, n+2) // NULL at the end, so that few statements are compiled
		args[0] = owner
		for i, key := range part {
			args[1+i] = key
		}
		// A cross join of the keys: else SQLite reads all answers of the owner.
		_, err := d.Exec(ctx, `
UPDATE answers SET counted = NOT counted
WHERE owner = ? AND (key, stream) IN (SELECT r.key, r.stream FROM (
  SELECT n.key, n.stream, n.counted, row_number() OVER (PARTITION BY n.key
    ORDER BY n.sidechain, n.output DESC,
      n.sidechain AND (SELECT s.parent = '' FROM streams s WHERE s.owner = n.owner AND s.id = n.stream),
      n.time, coalesce((SELECT f.copy FROM facts f WHERE f.owner = n.owner AND f.stream = n.stream), 0), n.stream
  ) = 1 AS best
  FROM (VALUES (CAST(? AS text))`+strings.Repeat(`, (?)`, n-1)+`) k CROSS JOIN answers n
  WHERE n.owner = ? AND n.key = k.column1 AND (NOT n.counted
    OR EXISTS (SELECT 1 FROM answers o WHERE o.owner = n.owner AND o.key = n.key AND o.stream <> n.stream))
) r WHERE r.counted <> r.best)`, append(args, owner)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// RemoveAnswers deletes a stream's copies of answers; of those that other streams have copies of, one counts again.
func RemoveAnswers(ctx context.Context, d Dialect, x OwnedStream) error {
	keys, err := List(ctx, d, `DELETE FROM answers WHERE owner = ? AND stream = ? RETURNING key`,
		[]any{x.Owner, x.Stream}, func(row Scanner) (key string, err error) { return key, row.Scan(&key) })
	if err != nil {
		return err
	}
	return countAnswers(ctx, d, x.Owner, keys)
}

// bestAnswers are answers fit to be stored, of several with one key the one that would stay: one statement can't
// write a row twice.
func bestAnswers(answers []server.Answer) []server.Answer {
	out := make([]server.Answer, 0, len(answers))
	for _, a := range answers {
		a.Key, a.Tokens = CleanKey(a.Key), ClampTokens(a.Tokens)
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

// KeepCommits implements server.Provenance.
func (k *Keeper) KeepCommits(ctx context.Context, shares []server.CommitShare) error {
	if len(shares) == 0 {
		return nil
	}
	shares = slices.Clone(shares)
	slices.SortFunc(shares, func(a, b server.CommitShare) int { // two callers lock rows in one order
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Commit, b.Commit))
	})
	err := k.db.Write(ctx, func(l Dialect) error {
		for i, c := range shares {
			_, err := l.Exec(ctx, `INSERT INTO commits (owner, stream, name, at, added, lines)
SELECT s.owner, s.id, ?, ?, ?, ? FROM streams s WHERE s.owner = ? AND s.id = ?
ON CONFLICT (owner, stream, name) DO UPDATE SET at = excluded.at, added = excluded.added, lines = excluded.lines`,
				CleanText(c.Commit), Micros(c.At), c.Added, c.Lines, c.Owner, c.Stream)
			if err != nil {
				return err
			}
			if i+1 < len(shares) && shares[i+1].Owner == c.Owner && shares[i+1].Stream == c.Stream {
				continue
			}
			_, err = l.Exec(ctx, `DELETE FROM commits WHERE owner = ? AND stream = ? AND name NOT IN (
  SELECT name FROM commits WHERE owner = ? AND stream = ? ORDER BY at DESC, name LIMIT ?)`,
				c.Owner, c.Stream, c.Owner, c.Stream, server.MaxCommits)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return Wrap(err, "keep shares of commits")
}

// Commits implements server.Provenance.
func (k *Keeper) Commits(ctx context.Context, scope server.Scope, owner, stream int64) ([]server.CommitShare, error) {
	var f Filter
	f.Add(`c.owner = ? AND c.stream = ?`, owner, stream)
	f.Scope(scope)
	out, err := List(ctx, k.db, `SELECT c.name, c.at, c.added, c.lines
FROM commits c JOIN streams s ON s.owner = c.owner AND s.id = c.stream
`+f.Where()+` ORDER BY c.at DESC, c.name`, f.Args,
		func(row Scanner) (server.CommitShare, error) {
			c := server.CommitShare{Owner: owner, Stream: stream}
			var at int64
			err := row.Scan(&c.Commit, &at, &c.Added, &c.Lines)
			c.At = Moment(at)
			return c, err
		})
	return out, Wrap(err, "list shares of commits")
}
