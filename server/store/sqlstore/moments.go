package sqlstore

import (
	"context"
	"slices"
	"strings"

	"github.com/ccship/ccship/server"
)

// momentRows is how many moments one statement stores.
const momentRows = 50

// saveMoments stores the moments of a derivation, in its transaction.
func saveMoments(ctx context.Context, l Dialect, d *server.Derivation) error {
	if !d.Live {
		return nil
	}
	query, args := `DELETE FROM moments WHERE owner = ? AND stream = ? AND line >= ?`,
		[]any{d.Task.Owner, d.Task.Stream, d.LiveFrom}
	if !d.Done {
		query, args = query+` AND line < ?`, append(args, d.Position.Line)
	}
	if _, err := l.Exec(ctx, query, args...); err != nil {
		return err
	}
	var there []server.Moment
	for _, m := range d.Moments {
		if m.Kind != "" {
			there = append(there, m)
			continue
		}
		_, err := l.Exec(ctx, `DELETE FROM moments WHERE owner = ? AND stream = ? AND line = ? AND part = ?`,
			d.Task.Owner, d.Task.Stream, m.Line, m.Part)
		if err != nil {
			return err
		}
	}
	for some := range slices.Chunk(there, momentRows) {
		args := make([]any, 0, 6*len(some))
		for _, m := range some {
			args = append(args, d.Task.Owner, d.Task.Stream, m.Line, m.Part, m.Kind, NotNil(m.Data))
		}
		_, err := l.Exec(ctx, `INSERT INTO moments (owner, stream, line, part, kind, data) VALUES `+
			strings.TrimSuffix(strings.Repeat(`(?, ?, ?, ?, ?, ?), `, len(some)), ", ")+`
ON CONFLICT (owner, stream, line, part) DO UPDATE SET kind = excluded.kind, data = excluded.data`, args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// Moments implements server.Moments.
func (c *Finder) Moments(ctx context.Context, q server.MomentQuery) ([]server.Moment, error) {
	var f Filter
	f.Add(`owner = ? AND stream = ?`, q.Owner, q.Stream)
	f.Add(`line >= ?`, q.From)
	if q.To > 0 {
		f.Add(`line < ?`, q.To)
	}
	if q.After != nil {
		f.Add(`(line > ? OR line = ? AND part > ?)`, q.After.Line, q.After.Line, q.After.Part)
	}
	if len(q.Kinds) > 0 {
		f.Add(`kind IN (`+Marks(len(q.Kinds))+`)`, Values(q.Kinds)...)
	}
	order := `line, part`
	if q.Backwards {
		order = `line DESC, part DESC`
	}
	out, err := List(ctx, c.reader, `SELECT line, part, kind, data FROM moments `+f.Where()+` ORDER BY `+order+` LIMIT ?`,
		append(f.Args, q.Limit), func(row Scanner) (m server.Moment, err error) {
			return m, row.Scan(&m.Line, &m.Part, &m.Kind, &m.Data)
		})
	return out, Wrap(err, "list moments")
}
