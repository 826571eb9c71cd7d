package store

import (
	"context"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
)

// SummaryOf implements server.Library.
func (s *SQLite) SummaryOf(ctx context.Context, stream int64) (server.Summary, error) {
	found, err := s.sessionsByID(ctx, []int64{stream})
	if err != nil {
		return server.Summary{}, err
	}
	return found[stream].Summary, nil
}

// Groups implements server.Library.
func (s *SQLite) Groups(ctx context.Context, scope server.Scope) ([]server.Group, error) {
	var f filter
	f.scope(scope)
	f.add(hasLines)
	// For columns taken from one row of many, SQLite uses the row that max() selected.
	out, err := list(ctx, sqliteDialect{s.read}, `
SELECT max(s.active), s.project_hash, s.project, s.cwd, s.machine, s.host, s.owner, sum(s.parent = ''),
  sum((SELECT CASE WHEN g.end_offset > 0 THEN g.end_offset ELSE g.bytes END
    FROM epochs e JOIN generations g ON g.epoch = e.id WHERE e.stream = s.id
    ORDER BY e.rank DESC, g.generation DESC LIMIT 1))
FROM streams s `+f.where()+`
GROUP BY s.project_hash, s.machine, s.owner
ORDER BY 1 DESC, s.project_hash, s.machine, s.owner`, f.args, func(row scanner) (g server.Group, err error) {
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
func (s *SQLite) Drops(ctx context.Context, scope server.Scope, q server.DropQuery) ([]server.Drop, error) {
	var f filter
	f.add(`d.lines > 0`)
	f.scope(scope)
	f.drops(sqliteDialect{}, q)
	var ids []int64
	out, err := list(ctx, sqliteDialect{s.read}, `
SELECT s.id, e.name, d.generation, g.first_seen, d.first_line, d.last_line, d.lines
FROM drops d JOIN epochs e ON e.id = d.epoch JOIN streams s ON s.id = e.stream
JOIN generations g ON g.epoch = d.epoch AND g.generation = d.generation
`+f.where()+`
ORDER BY g.first_seen DESC, d.epoch DESC, d.generation DESC LIMIT ?`, append(f.args, q.Limit),
		func(row scanner) (d server.Drop, err error) {
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
func (s *SQLite) Received(ctx context.Context, stream, epoch, generation, line int64) (time.Time, error) {
	var at int64
	err := s.read.QueryRowContext(ctx, `
SELECT CASE WHEN l.received > 0 THEN l.received ELSE g.first_seen END
FROM lines l JOIN generations g ON g.epoch = l.epoch AND g.generation = l.generation
JOIN epochs e ON e.id = l.epoch AND e.stream = ?
WHERE l.epoch = ? AND l.generation = ? AND l.line = ?`, stream, epoch, generation, line).Scan(&at)
	if err != nil {
		return time.Time{}, fmt.Errorf("look up line %d: %w", line, translate(err))
	}
	return moment(at), nil
}
