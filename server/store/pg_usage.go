package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/ccship/ccship/server"
)

// pgWhen is usageWhen as a timestamp.
const pgWhen = `(timestamp '1970-01-01' +
  least(greatest(a.time / 1000000 + ?::bigint, -62135596800), 253402300799) * interval '1 second')`

// pgUsageColumns are the columns that usage is grouped by.
var pgUsageColumns = map[string]string{
	"day":     `to_char(` + pgWhen + `, 'YYYY-MM-DD')`,
	"hour":    `((extract(isodow FROM ` + pgWhen + `)::int - 1) * 24 + extract(hour FROM ` + pgWhen + `)::int)`,
	"project": `s.project_hash`,
	"model":   `a.model`,
	"machine": `s.machine`,
	"user":    `s.owner`,
	"session": `s.session_id`,
}

// Usage implements server.Library.
func (s *Postgres) Usage(ctx context.Context, scope server.Scope, q server.UsageQuery) ([]server.UsageRow, error) {
	var columns, group []string
	var args []any
	for i, by := range q.By {
		column, ok := pgUsageColumns[by]
		if !ok {
			return nil, fmt.Errorf("sum usage: nothing is known by %q", by)
		}
		for range strings.Count(column, "?") {
			args = append(args, int64(q.Zone.Seconds()))
		}
		columns, group = append(columns, column), append(group, fmt.Sprint(i+1))
	}
	var f filter
	f.add(`a.counted`)
	f.scope(scope)
	f.pgUsage(q)
	columns = append(columns, `max(s.project)`, `count(*)`)
	for _, sum := range []string{"input", "output", "cache_read", "cache_write_5m", "cache_write_1h"} {
		columns = append(columns, `coalesce(sum(a.`+sum+`), 0)::float8`)
	}
	query := `SELECT ` + strings.Join(columns, ", ") + ` FROM answers a JOIN streams s ON s.id = a.stream ` + f.where()
	if len(group) > 0 {
		query += ` GROUP BY ` + strings.Join(group, ", ") + ` ORDER BY ` + strings.Join(group, ", ")
	}
	sql, args := numbered(query, append(args, f.args...))
	out, err := collectPg(ctx, s, sql, args, func(row scanner) (server.UsageRow, error) { return scanUsage(row, q.By) })
	if err != nil {
		return nil, fmt.Errorf("sum usage: %w", err)
	}
	if len(q.By) == 0 && out[0].Tokens.Answers == 0 {
		return nil, nil
	}
	return out, nil
}

// pgUsage lets through what a query chooses, of answers a of streams s.
func (f *filter) pgUsage(q server.UsageQuery) {
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
	if q.Session != "" {
		f.pgSession(q.Session, q.Agents)
	}
}
