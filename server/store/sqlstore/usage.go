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

// usageColumns are what usage u is grouped by. u.at is in seconds since 1970, in the zone of the question. Days are
// numbers since then, of the years 1 to 9999; 1970 began on a Thursday.
var usageColumns = map[string]string{
	"day": `CASE WHEN u.at < -62135596800 THEN -719162 WHEN u.at > 253402300799 THEN 2932896
  ELSE (u.at - (u.at % 86400 + 86400) % 86400) / 86400 END`,
	"hour":    `(((u.at - (u.at % 3600 + 3600) % 3600) / 3600 + 72) % 168 + 168) % 168`,
	"project": `u.project_hash`, "model": `u.model`, "machine": `u.machine`, "user": `u.owner`,
	"session": `u.session_id`, "long": `u.long`,
}

// Usage implements server.Library. It sums the answers that count: from sums of half hours, and at the ends of the time
// asked for, or where sums know too little, from the answers.
func (c *Finder) Usage(ctx context.Context, scope server.Scope, q server.UsageQuery) ([]server.UsageRow, error) {
	var columns, group []string
	var args []any
	for i, by := range q.By {
		column, ok := usageColumns[by]
		if !ok {
			return nil, fmt.Errorf("sum usage: nothing is known by %q", by)
		}
		columns, group = append(columns, column), append(group, fmt.Sprint(i+1))
	}
	columns = append(columns, `max(u.project)`, `CAST(coalesce(sum(u.answers), 0) AS bigint)`)
	for _, sum := range []string{"input", "output", "cache_read", "cache_write_5m", "cache_write_1h", "searches"} {
		columns = append(columns, `coalesce(sum(CAST(u.`+sum+` AS double precision)), 0.0)`)
	}
	var from []string
	parts := usageParts(q)
	totalled := ofTotals(scope, q) && parts[0].from == fromSums
	if totalled {
		lack := parts[0]
		parts[0].from, lack.from = fromTotals, fromDifferences
		parts = append(parts, lack)
	}
	for _, part := range parts {
		query, values := part.query(scope, q)
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
	out, err := List(ctx, c.reader, query, args,
		func(row Scanner) (server.UsageRow, error) { return scanUsage(row, q.By) })
	if err != nil {
		return nil, fmt.Errorf("sum usage: %w", err)
	}
	if len(q.By) == 0 && out[0].Tokens.Answers == 0 {
		return nil, nil
	}
	return out, nil
}

// ofTotals says whether totals over all owners know the answer.
func ofTotals(scope server.Scope, q server.UsageQuery) bool {
	return scope.All && scope.Only == 0 && q.Project == "" && q.Machine == nil && q.User == 0 &&
		!slices.ContainsFunc(q.By, func(by string) bool {
			return !slices.Contains([]string{"day", "hour", "model", "long"}, by)
		})
}

// source is where a part of usage is summed from: single answers, half hours by owner, half hours of all owners, or
// what these lack.
type source int

const (
	fromAnswers source = iota
	fromSums
	fromTotals
	fromDifferences
)

// usagePart is a part of the time asked for: from sums, or answer by answer.
type usagePart struct {
	from         source
	since, until time.Time // zero: no bound
}

func usageParts(q server.UsageQuery) []usagePart {
	zoned := slices.Contains(q.By, "day") || slices.Contains(q.By, "hour")
	if q.Session != "" || slices.Contains(q.By, "session") || zoned && q.Zone%usageSlot != 0 {
		return []usagePart{{fromAnswers, q.Since, q.Until}}
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
		return []usagePart{{fromAnswers, q.Since, q.Until}}
	}
	parts := []usagePart{{fromSums, first, last}}
	if !first.Equal(q.Since) {
		parts = append(parts, usagePart{fromAnswers, q.Since, first})
	}
	if !last.Equal(q.Until) {
		parts = append(parts, usagePart{fromAnswers, last, q.Until})
	}
	return parts
}

// slotOf returns when the half hour of a time begins.
func slotOf(at time.Time) time.Time {
	const slot = int64(usageSlot / time.Microsecond)
	n := at.UnixMicro()
	return time.UnixMicro(n - (n%slot+slot)%slot)
}

// query selects what usage is summed of.
func (p usagePart) query(scope server.Scope, q server.UsageQuery) (string, []any) {
	var f Filter
	f.Scope(scope)
	if !scope.All {
		f.Add(`s.owner IN (SELECT CAST(? AS bigint) UNION SELECT owner FROM shares WHERE with_user = ?)`,
			scope.User, scope.User)
	}
	f.Project(scope, q.Project)
	f.Streams(q.Machine, q.User)
	table, at, model := `usage_sums s`, `s.slot`, `s.model`
	unit := int64(usageSlot / time.Microsecond)
	zone := fmt.Sprintf(` + %d AS at`, int64(q.Zone/time.Second))
	columns := `s.model AS model, s.long AS long, s.slot * 1800` + zone + `, s.answers AS answers, s.input AS input,
  s.output AS output, s.cache_read AS cache_read, s.cache_write_5m AS cache_write_5m,
  s.cache_write_1h AS cache_write_1h, s.searches AS searches, '' AS session_id`
	switch p.from {
	case fromTotals, fromDifferences:
		return p.total(q)
	case fromSums:
		f.Add(`s.answers <> 0`)
	case fromAnswers:
		table = `answers a JOIN streams s ON s.owner = a.owner AND s.id = a.stream`
		at, model, unit = `a.time`, `substr(a.model, 1, 200)`, 1
		columns = model + ` AS model, (` + LongContext + `) AS long,
  (a.time - (a.time % 1000000 + 1000000) % 1000000) / 1000000` + zone + `, 1 AS answers, a.input AS input,
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
		project = OneProject("s")
	}
	return `SELECT s.owner AS owner, ` + project + ` AS project_hash, s.project AS project, s.machine AS machine, ` +
		columns + ` FROM ` + table + ` ` + f.Where(), f.Args
}

// total is query for usage of all owners.
func (p usagePart) total(q server.UsageQuery) (string, []any) {
	var f Filter
	table, less := `usage_totals s`, func(string) string { return `` }
	if p.from == fromDifferences {
		table, less = `usage_sums s`, func(sum string) string { return ` - s.t_` + sum }
		f.Add(`s.total = 0`)
	}
	const unit = int64(usageSlot / time.Microsecond)
	if q.Model != "" {
		f.Add(`s.model = ?`, q.Model)
	}
	if !p.since.IsZero() {
		f.Add(`s.slot >= ?`, p.since.UnixMicro()/unit)
	}
	if !p.until.IsZero() {
		f.Add(`s.slot < ?`, p.until.UnixMicro()/unit)
	}
	columns := `0 AS owner, '' AS project_hash, '' AS project, '' AS machine, s.model AS model, s.long AS long, ` +
		fmt.Sprintf(`s.slot * 1800 + %d AS at`, int64(q.Zone/time.Second))
	for _, sum := range []string{
		"answers", "input", "output", "cache_read", "cache_write_5m", "cache_write_1h", "searches",
	} {
		columns += `, s.` + sum + less(sum) + ` AS ` + sum
	}
	return `SELECT ` + columns + `, '' AS session_id FROM ` + table + ` ` + f.Where(), f.Args
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
	var day int64
	fields := map[string]any{
		"day": &day, "hour": &u.Hour, "project": &u.Project, "model": &u.Model, "machine": &u.Machine,
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
	if slices.Contains(by, "day") {
		u.Day = time.Unix(day*24*60*60, 0).UTC().Format(time.DateOnly)
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

// totalMost is about how many rows of usage are summed up in one transaction: derivers of their owners wait.
const totalMost = 500

// total is a difference of a row of usage_totals.
type total struct {
	slot  int64
	model string
	long  bool
	sum   server.Tokens
}

func (t *total) values() []any {
	s := t.sum
	return []any{s.Answers, s.Input, s.Output, s.CacheRead, s.CacheWrite5m, s.CacheWrite1h, s.Searches}
}

const tokens = `answers, input, output, cache_read, cache_write_5m, cache_write_1h, searches`

// totals sums up some usage, and reports whether there may be more. An owner whose answers another changes is left
// out.
func (x *Sums) totals(ctx context.Context, d Dialect) (more bool, err error) {
	if leads, err := d.TryHold(ctx, HeldSums, 0); err != nil || !leads {
		return false, err
	}
	var all []total
	for owner := int64(-1); len(all) < totalMost; {
		next, err := Numbers(ctx, d,
			`SELECT s.owner FROM usage_sums s WHERE s.total = 0 AND s.owner > ? ORDER BY s.owner LIMIT 1`, owner)
		if err != nil {
			return false, err
		}
		if len(next) == 0 {
			break
		}
		owner = next[0]
		some, err := x.ofOwner(ctx, d, owner)
		if err != nil {
			return false, err
		}
		all = append(all, some...)
	}
	return len(all) >= totalMost, add(ctx, d, all)
}

// ofOwner takes what the totals lack of an owner, at most about totalMost rows of it.
func (x *Sums) ofOwner(ctx context.Context, d Dialect, owner int64) ([]total, error) {
	if free, err := d.TryHold(ctx, HeldOwner, owner); err != nil || !free {
		return nil, err
	}
	where, args := `owner = ? AND total = 0`, []any{owner}
	bound, err := Numbers(ctx, d, `SELECT slot FROM usage_sums WHERE `+where+` ORDER BY slot LIMIT 1 OFFSET ?`,
		owner, totalMost)
	if err != nil {
		return nil, err
	}
	if len(bound) > 0 {
		where, args = where+` AND slot <= ?`, append(args, bound[0])
	}
	list, err := differences(ctx, d, where, args)
	if err == nil {
		_, err = d.Exec(ctx, `UPDATE usage_sums SET total = 1, t_answers = answers, t_input = input, t_output = output,
  t_cache_read = cache_read, t_cache_write_5m = cache_write_5m, t_cache_write_1h = cache_write_1h,
  t_searches = searches
WHERE `+where, args...)
	}
	if err == nil {
		_, err = d.Exec(ctx, `DELETE FROM usage_sums WHERE owner = ? AND answers = 0 AND total = 1`, owner)
	}
	return list, err
}

// differences returns what the totals lack of rows of usage.
func differences(ctx context.Context, d Dialect, where string, args []any) ([]total, error) {
	return List(ctx, d, `
SELECT slot, model, long, CAST(sum(answers - t_answers) AS bigint), CAST(sum(input - t_input) AS bigint),
  CAST(sum(output - t_output) AS bigint), CAST(sum(cache_read - t_cache_read) AS bigint),
  CAST(sum(cache_write_5m - t_cache_write_5m) AS bigint), CAST(sum(cache_write_1h - t_cache_write_1h) AS bigint),
  CAST(sum(searches - t_searches) AS bigint)
FROM usage_sums WHERE `+where+` GROUP BY slot, model, long`, args, func(row Scanner) (t total, err error) {
		return t, row.Scan(append([]any{&t.slot, &t.model, &t.long}, TokenColumns(&t.sum)...)...)
	})
}

// add adds differences to the totals.
func add(ctx context.Context, d Dialect, list []total) error {
	for i := range list {
		t := &list[i]
		if t.sum == (server.Tokens{}) {
			continue
		}
		_, err := d.Exec(ctx, `INSERT INTO usage_totals AS t (slot, model, long, `+tokens+`)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (slot, model, long) DO UPDATE SET `+added,
			append([]any{t.slot, t.model, t.long}, t.values()...)...)
		if err != nil {
			return err
		}
	}
	_, err := d.Exec(ctx, `DELETE FROM usage_totals WHERE answers = 0`)
	return err
}

const added = `answers = t.answers + excluded.answers, input = t.input + excluded.input,
  output = t.output + excluded.output, cache_read = t.cache_read + excluded.cache_read,
  cache_write_5m = t.cache_write_5m + excluded.cache_write_5m,
  cache_write_1h = t.cache_write_1h + excluded.cache_write_1h, searches = t.searches + excluded.searches`
