package store

import (
	"context"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
)

// SummaryOf implements server.Library.
func (s *Postgres) SummaryOf(ctx context.Context, stream int64) (server.Summary, error) {
	found, err := s.sessionsByID(ctx, []int64{stream})
	if err != nil {
		return server.Summary{}, err
	}
	return found[stream].Summary, nil
}

// Groups implements server.Library.
func (s *Postgres) Groups(ctx context.Context, scope server.Scope) ([]server.Group, error) {
	var f filter
	f.scope(scope)
	f.add(hasLines)
	sql, args := numbered(`
SELECT max(s.active), s.project_hash, (array_agg(s.project ORDER BY s.active DESC, s.id DESC))[1],
  (array_agg(s.cwd ORDER BY s.active DESC, s.id DESC))[1], s.machine,
  (array_agg(s.host ORDER BY s.active DESC, s.id DESC))[1], s.owner,
  count(*) FILTER (WHERE s.parent = ''), coalesce(sum(b.bytes), 0)::bigint
FROM streams s LEFT JOIN LATERAL (
  SELECT CASE WHEN end_offset > 0 THEN end_offset ELSE bytes END AS bytes FROM generations
  WHERE stream = s.id ORDER BY epoch DESC, generation DESC LIMIT 1
) b ON true `+f.where()+`
GROUP BY s.project_hash, s.machine, s.owner
ORDER BY 1 DESC, s.project_hash, s.machine, s.owner`, f.args)
	out, err := collectPg(ctx, s, sql, args, func(row scanner) (g server.Group, err error) {
		var last int64
		err = row.Scan(&last, &g.ProjectHash, &g.Project, &g.Cwd, &g.Machine, &g.Host, &g.Owner, &g.Sessions, &g.Bytes)
		g.Last = moment(last)
		return g, err
	})
	if err != nil {
		return nil, fmt.Errorf("list projects: %w", err)
	}
	return out, nil
}

// Drops implements server.Library.
func (s *Postgres) Drops(ctx context.Context, scope server.Scope, q server.DropQuery) ([]server.Drop, error) {
	var f filter
	f.add(`d.lines > 0`)
	f.scope(scope)
	f.drops(pgDialect{}, q)
	sql, args := numbered(`
SELECT s.id, e.name, d.generation, g.first_seen, d.first_line, d.last_line, d.lines
FROM drops d JOIN epochs e ON e.stream = d.stream AND e.rank = d.epoch JOIN streams s ON s.id = d.stream
JOIN generations g ON g.stream = d.stream AND g.epoch = d.epoch AND g.generation = d.generation
`+f.where()+`
ORDER BY g.first_seen DESC, d.stream DESC, d.epoch DESC, d.generation DESC LIMIT ?`, append(f.args, q.Limit))
	var ids []int64
	out, err := collectPg(ctx, s, sql, args, func(row scanner) (d server.Drop, err error) {
		var at int64
		err = row.Scan(&d.Session.ID, &d.Epoch, &d.Generation, &at, &d.First, &d.Last, &d.Lines)
		d.At = moment(at)
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
func (s *Postgres) Received(ctx context.Context, stream, epoch, generation, line int64) (time.Time, error) {
	var at int64
	err := s.pool.QueryRow(ctx,
		`SELECT received FROM lines WHERE stream = $1 AND epoch = $2 AND generation = $3 AND line = $4`,
		stream, epoch, generation, line).Scan(&at)
	if err != nil {
		return time.Time{}, fmt.Errorf("look up line %d: %w", line, translatePg(err))
	}
	return moment(at), nil
}
