package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// SummaryOf implements server.Library.
func (s *Store) SummaryOf(ctx context.Context, stream int64) (server.Summary, error) {
	found, err := s.sessionsByID(ctx, []int64{stream})
	if err != nil {
		return server.Summary{}, err
	}
	return found[stream].Summary, nil
}

// Drops implements server.Library.
func (s *Store) Drops(ctx context.Context, scope server.Scope, q server.DropQuery) ([]server.Drop, error) {
	var f sqlstore.Filter
	f.Add(`d.lines > 0`)
	f.Scope(scope)
	f.Drops(q)
	sql, args := numbered(`
SELECT s.id, e.name, d.generation, g.first_seen, d.first_line, d.last_line, d.lines
FROM drops d JOIN epochs e ON e.owner = d.owner AND e.stream = d.stream AND e.rank = d.epoch
JOIN streams s ON s.owner = d.owner AND s.id = d.stream
JOIN generations g ON g.owner = d.owner AND g.stream = d.stream AND g.epoch = d.epoch AND g.generation = d.generation
`+f.Where()+`
ORDER BY g.first_seen DESC, d.stream DESC, d.epoch DESC, d.generation DESC LIMIT ?`, append(f.Args, q.Limit))
	var ids []int64
	out, err := collectPg(ctx, s, sql, args, func(row sqlstore.Scanner) (d server.Drop, err error) {
		var at int64
		err = row.Scan(&d.Session.ID, &d.Epoch, &d.Generation, &at, &d.First, &d.Last, &d.Lines)
		d.At = sqlstore.Moment(at)
		ids = append(ids, d.Session.ID)
		return d, err
	})
	if err != nil {
		return nil, fmt.Errorf("list rewrites: %w", err)
	}
	found, err := s.sessionsByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].Session = found[out[i].Session.ID].Session
	}
	return out, nil
}

// Received implements server.Library.
func (s *Store) Received(ctx context.Context, stream, epoch, generation, line int64) (time.Time, error) {
	at := lines.Place{Stream: stream, Epoch: epoch, Generation: generation}
	if err := s.pool.QueryRow(ctx, `SELECT owner FROM streams WHERE id = $1`, stream).Scan(&at.Owner); err != nil {
		return time.Time{}, fmt.Errorf("look up line %d: %w", line, translate(err))
	}
	l, ok, err := s.held.Facts(ctx, dialect{s.pool}, at, line)
	if err == nil && !ok {
		err = server.ErrNotFound
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("look up line %d: %w", line, err)
	}
	return sqlstore.Moment(l.Received), nil
}
