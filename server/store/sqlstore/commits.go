package sqlstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/ccship/ccship/server"
)

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
