package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
)

// usageSlot is the time that a row of usage_sums is for. Days and hours of a zone are made from whole ones unless it
// is a quarter of an hour off.
const usageSlot = 30 * time.Minute

// UsageTerms is what one database says of usage in words of its own.
type UsageTerms struct {
	// Day and Hour are of u.at, in seconds since 1970, plus ? seconds. A zone must not carry them out of the years 1 to
	// 9999: SQLite knows no day beyond them, and one answer with such a time would take all sums with it.
	Day, Hour string
	// Want gets the zone of a question, in half hours east of UTC, whose days are not summed up.
	Want func(zone int64)
}

func (t UsageTerms) column(by string) (string, bool) {
	column, ok := map[string]string{
		"day": t.Day, "hour": t.Hour, "project": `u.project_hash`, "model": `u.model`, "machine": `u.machine`,
		"user": `u.owner`, "session": `u.session_id`, "long": `u.long`,
	}[by]
	return column, ok
}

// Usage sums the answers that count: from sums of half hours, and at the ends of the time asked for, or where sums know
// too little, from the answers.
func Usage(ctx context.Context, l Dialect, t UsageTerms, scope server.Scope,
	q server.UsageQuery) ([]server.UsageRow, error) {
	var columns, group []string
	var args []any
	for i, by := range q.By {
		column, ok := t.column(by)
		if !ok {
			return nil, fmt.Errorf("sum usage: nothing is known by %q", by)
		}
		for range strings.Count(column, "?") {
			args = append(args, int64(q.Zone.Seconds()))
		}
		columns, group = append(columns, column), append(group, fmt.Sprint(i+1))
	}
	columns = append(columns, `max(u.project)`, `CAST(coalesce(sum(u.answers), 0) AS bigint)`)
	for _, sum := range []string{"input", "output", "cache_read", "cache_write_5m", "cache_write_1h", "searches"} {
		columns = append(columns, `coalesce(sum(CAST(u.`+sum+` AS double precision)), 0.0)`)
	}
	var from []string
	parts := usageParts(q)
	totalled := ofTotals(scope, q)
	if totalled {
		var err error
		if parts, err = totalParts(ctx, l, t, q, parts); err != nil {
			return nil, fmt.Errorf("sum usage: %w", err)
		}
	}
	for _, part := range parts {
		query, values := part.query(t, scope, q)
		from, args = append(from, query), append(args, values...)
	}
	query := `SELECT ` + strings.Join(columns, ", ") + ` FROM (` + strings.Join(from, ` UNION ALL `) + `) u`
	if len(group) > 0 {
		query += ` GROUP BY ` + strings.Join(group, ", ")
		if totalled { // where nothing is left, a difference is 0
			query += ` HAVING sum(u.answers) <> 0`
		}
		query += ` ORDER BY ` + strings.Join(group, ", ")
	}
	out, err := List(ctx, l, query, args,
		func(row Scanner) (server.UsageRow, error) { return scanUsage(row, q.By) })
	if err != nil {
		return nil, fmt.Errorf("sum usage: %w", err)
	}
	if len(q.By) == 0 && out[0].Tokens.Answers == 0 {
		return nil, nil
	}
	return out, nil
}

// source is where a part of usage is summed from: single answers, half hours by owner, or, of all owners, half hours,
// days of a zone, or what these lack.
type source int

const (
	fromAnswers source = iota
	fromSums
	fromTotals
	fromDays
	fromDifferences
)

// usagePart is a part of the time asked for: from sums, or answer by answer.
type usagePart struct {
	from         source
	since, until time.Time // zero: no bound
	zone         int64     // of days, in half hours
}

func usageParts(q server.UsageQuery) []usagePart {
	zoned := slices.Contains(q.By, "day") || slices.Contains(q.By, "hour")
	if q.Session != "" || slices.Contains(q.By, "session") || zoned && q.Zone%usageSlot != 0 {
		return []usagePart{{fromAnswers, q.Since, q.Until, 0}}
	}
	first, last := q.Since, q.Until
	if !first.IsZero() {
		first = slotOf(first)
		if first.Before(q.Since) {
			first = first.Add(usageSlot)
		}
	}
	if !last.IsZero() {
		last = slotOf(last)
	}
	if !first.IsZero() && !last.IsZero() && !first.Before(last) {
		return []usagePart{{fromAnswers, q.Since, q.Until, 0}}
	}
	parts := []usagePart{{fromSums, first, last, 0}}
	if !first.Equal(q.Since) {
		parts = append(parts, usagePart{fromAnswers, q.Since, first, 0})
	}
	if !last.Equal(q.Until) {
		parts = append(parts, usagePart{fromAnswers, last, q.Until, 0})
	}
	return parts
}

// slotOf is when the half hour of a time begins.
func slotOf(at time.Time) time.Time {
	const slot = int64(usageSlot / time.Microsecond)
	n := at.UnixMicro()
	return time.UnixMicro(n - (n%slot+slot)%slot)
}

// query selects what usage is summed of.
func (p usagePart) query(t UsageTerms, scope server.Scope, q server.UsageQuery) (string, []any) {
	var f Filter
	f.Scope(scope)
	if !scope.All {
		f.Add(`s.owner IN (SELECT CAST(? AS bigint) UNION SELECT owner FROM shares WHERE with_user = ?)`,
			scope.User, scope.User)
	}
	f.Streams(q.Project, q.Machine, q.User)
	table, at, model := `usage_sums s`, `s.slot`, `s.model`
	unit := int64(usageSlot / time.Microsecond)
	columns := `s.model AS model, s.long AS long, s.slot * 1800 AS at, s.answers AS answers, s.input AS input,
  s.output AS output, s.cache_read AS cache_read, s.cache_write_5m AS cache_write_5m,
  s.cache_write_1h AS cache_write_1h, s.searches AS searches, '' AS session_id`
	switch p.from {
	case fromTotals, fromDays, fromDifferences:
		return p.total(q)
	case fromSums:
		f.Add(`s.answers <> 0`)
	case fromAnswers:
		table = `answers a JOIN streams s ON s.owner = a.owner AND s.id = a.stream`
		at, model, unit = `a.time`, `substr(a.model, 1, 200)`, 1
		columns = model + ` AS model, (` + LongContext + `) AS long,
  (a.time - (a.time % 1000000 + 1000000) % 1000000) / 1000000 AS at, 1 AS answers, a.input AS input,
  a.output AS output, a.cache_read AS cache_read, a.cache_write_5m AS cache_write_5m,
  a.cache_write_1h AS cache_write_1h, a.searches AS searches, s.session_id AS session_id`
		f.Add(`a.counted`)
		if q.Session != "" {
			f.Session(q.Session, q.Agents)
		} else if !p.since.IsZero() || !p.until.IsZero() {
			answersOf(&f, scope, q.User)
		}
	}
	if q.Model != "" {
		f.Add(model+` = ?`, q.Model)
	}
	if !p.since.IsZero() {
		f.Add(at+` >= ?`, p.since.UnixMicro()/unit)
	}
	if !p.until.IsZero() {
		f.Add(at+` < ?`, p.until.UnixMicro()/unit)
	}
	project := `s.project_hash`
	if slices.Contains(q.By, "project") {
		project = oneProject
	}
	return `SELECT s.owner AS owner, ` + project + ` AS project_hash, s.project AS project, s.machine AS machine, ` +
		columns + ` FROM ` + table + ` ` + f.Where(), f.Args
}

// answersOf makes answers of some time be looked up in the index of each owner whose answers may be asked for.
func answersOf(f *Filter, scope server.Scope, user int64) {
	switch {
	case user != 0:
		f.Add(`a.owner = ?`, user)
	case scope.All, scope.Only != 0:
		f.Add(countedOwners)
	default:
		f.Add(`a.owner IN (SELECT CAST(? AS bigint) UNION SELECT owner FROM shares WHERE with_user = ?)`,
			scope.User, scope.User)
	}
}

// countedOwners makes answers of some time be looked up in the index of each owner that has any.
const countedOwners = `a.owner IN (
  WITH RECURSIVE o (owner) AS (
    SELECT min(owner) FROM usage_sums
    UNION ALL SELECT (SELECT min(n.owner) FROM usage_sums n WHERE n.owner > o.owner) FROM o WHERE o.owner IS NOT NULL
  ) SELECT owner FROM o WHERE owner IS NOT NULL)`

// scanUsage scans a row of usage, grouped by what by names, with a name of its project.
func scanUsage(row Scanner, by []string) (server.UsageRow, error) {
	u := server.UsageRow{Hour: -1}
	fields := map[string]any{
		"day": &u.Day, "hour": &u.Hour, "project": &u.Project, "model": &u.Model, "machine": &u.Machine,
		"user": &u.User, "session": &u.Session, "long": &u.Long,
	}
	var to []any
	for _, name := range by {
		to = append(to, fields[name])
	}
	var name *string
	var sums [6]float64
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
	for i, at := range []*int64{&t.Input, &t.Output, &t.CacheRead, &t.CacheWrite5m, &t.CacheWrite1h, &t.Searches} {
		*at = int64(sums[i])
	}
	return u, nil
}
