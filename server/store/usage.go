package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/ccship/ccship/server"
)

// usageWhen is when an answer came, in seconds; ? is how far east of UTC. A zone must not carry it out of the years
// 1 to 9999: SQLite knows no day beyond them, and one answer with such a time would take all sums with it.
const usageWhen = `min(max(a.time / 1000000 + ?, -62135596800), 253402300799)`

// usageColumns are the columns that usage is grouped by.
var usageColumns = map[string]string{
	"day": `strftime('%Y-%m-%d', ` + usageWhen + `, 'unixepoch')`,
	"hour": `((strftime('%w', ` + usageWhen + `, 'unixepoch') + 6) % 7) * 24
  + strftime('%H', ` + usageWhen + `, 'unixepoch')`,
	"project": `s.project_hash`,
	"model":   `a.model`,
	"machine": `s.machine`,
	"user":    `s.owner`,
	"session": `s.session_id`,
}

// Usage implements server.Library.
func (s *SQLite) Usage(ctx context.Context, scope server.Scope, q server.UsageQuery) ([]server.UsageRow, error) {
	var columns, group []string
	var args []any
	for i, by := range q.By {
		column, ok := usageColumns[by]
		if !ok {
			return nil, fmt.Errorf("sum usage: nothing is known by %q", by)
		}
		for range strings.Count(column, "?") {
			args = append(args, int64(q.Zone.Seconds()))
		}
		columns, group = append(columns, column), append(group, fmt.Sprint(i+1))
	}
	var f filter
	f.add(`a.counted = 1`)
	f.scope(scope)
	f.usage(q)
	columns = append(columns, `max(s.project)`, `count(*)`, `total(a.input)`, `total(a.output)`, `total(a.cache_read)`,
		`total(a.cache_write_5m)`, `total(a.cache_write_1h)`)
	query := `SELECT ` + strings.Join(columns, ", ") + ` FROM answers a JOIN streams s ON s.id = a.stream ` + f.where()
	if len(group) > 0 {
		query += ` GROUP BY ` + strings.Join(group, ", ") + ` ORDER BY ` + strings.Join(group, ", ")
	}
	args = append(args, f.args...)
	out, err := list(ctx, sqliteDialect{s.read}, query, args, func(row scanner) (server.UsageRow, error) {
		return scanUsage(row, q.By)
	})
	if err != nil {
		return nil, fmt.Errorf("sum usage: %w", err)
	}
	if len(q.By) == 0 && out[0].Tokens.Answers == 0 {
		return nil, nil
	}
	return out, nil
}

func scanUsage(row scanner, by []string) (server.UsageRow, error) {
	u := server.UsageRow{Hour: -1}
	fields := map[string]any{
		"day": &u.Day, "hour": &u.Hour, "project": &u.Project, "model": &u.Model, "machine": &u.Machine,
		"user": &u.User, "session": &u.Session,
	}
	var to []any
	for _, name := range by {
		to = append(to, fields[name])
	}
	var name *string
	var sums [5]float64
	to = append(to, &name, &u.Tokens.Answers)
	for i := range sums {
		to = append(to, &sums[i])
	}
	if err := row.Scan(to...); err != nil {
		return u, err
	}
	if u.Project != "" && name != nil {
		u.Name = *name
	}
	t := &u.Tokens
	for i, at := range []*int64{&t.Input, &t.Output, &t.CacheRead, &t.CacheWrite5m, &t.CacheWrite1h} {
		*at = int64(sums[i])
	}
	return u, nil
}

// usage lets through what a query chooses, of answers a of streams s.
func (f *filter) usage(q server.UsageQuery) {
	f.streams(q.Project, q.Machine, q.User)
	if q.Model != "" {
		f.add(`a.model = ?`, q.Model)
	}
	if !q.Since.IsZero() {
		f.add(`a.time >= ?`, q.Since.UnixMicro())
	}
	if !q.Until.IsZero() {
		f.add(`a.time < ?`, q.Until.UnixMicro())
	}
	switch {
	case q.Session == "":
	case q.Agents:
		f.add(`(s.session_id = ? OR s.parent = ?)`, q.Session, q.Session)
	default:
		f.add(`s.session_id = ?`, q.Session)
	}
}
