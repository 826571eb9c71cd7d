package sqlstore

import (
	"context"
	"slices"
	"time"

	"github.com/ccship/ccship/server"
)

// selectZones lists the zones of which days are summed up, in half hours east of UTC.
const selectZones = `SELECT zone FROM usage_zones ORDER BY zone`

const daySlots = int64(24 * time.Hour / usageSlot)

// dayOf is the day of a half hour in a zone.
func dayOf(slot, zone int64) int64 { return floor(slot+zone, daySlots) }

func floor(n, by int64) int64 { return (n - (n%by+by)%by) / by }

// ofTotals says whether totals over all owners know the answer.
func ofTotals(scope server.Scope, q server.UsageQuery) bool {
	return scope.All && scope.Only == 0 && q.Project == "" && q.Machine == nil && q.User == 0 &&
		!slices.ContainsFunc(q.By, func(by string) bool {
			return !slices.Contains([]string{"day", "hour", "model", "long"}, by)
		})
}

// totalParts takes totals instead of sums: whole days where days of a zone will do, half hours else. What they lack is
// a part too.
func totalParts(ctx context.Context, l Dialect, t UsageTerms, q server.UsageQuery,
	parts []usagePart) (out []usagePart, err error) {
	for _, p := range parts {
		if p.from != fromSums {
			out = append(out, p)
			continue
		}
		zone, days, err := dayZone(ctx, l, t, q)
		if err != nil {
			return nil, err
		}
		lack, ends := p, []usagePart{p}
		lack.from = fromDifferences
		if days {
			ends = p.days(zone)
		}
		for _, end := range ends {
			if end.from == fromSums {
				end.from = fromTotals
			}
			out = append(out, end)
		}
		out = append(out, lack)
	}
	return out, nil
}

// dayZone is a zone whose days the answer can be made from, if there is one.
func dayZone(ctx context.Context, l Dialect, t UsageTerms,
	q server.UsageQuery) (zone int64, ok bool, err error) {
	if slices.Contains(q.By, "hour") {
		return 0, false, nil
	}
	zones, err := List(ctx, l, selectZones, nil,
		func(row Scanner) (zone int64, err error) { return zone, row.Scan(&zone) })
	if err != nil {
		return 0, false, err
	}
	if q.Zone%usageSlot == 0 {
		zone = int64(q.Zone / usageSlot)
		if slices.Contains(zones, zone) {
			return zone, true, nil
		}
		if slices.Contains(q.By, "day") {
			t.Want(zone)
		}
	}
	return 0, !slices.Contains(q.By, "day"), nil
}

// days divides a part: days of a zone, and what is before and behind them.
func (p usagePart) days(zone int64) []usagePart {
	day := func(n int64) time.Time { return time.Unix((n*daySlots-zone)*int64(usageSlot/time.Second), 0) }
	of := func(at time.Time) int64 { return dayOf(floor(at.UnixMicro(), int64(usageSlot/time.Microsecond)), zone) }
	middle := p
	middle.from, middle.zone = fromDays, zone
	if !p.since.IsZero() {
		if middle.since = day(of(p.since)); middle.since.Before(p.since) {
			middle.since = day(of(p.since) + 1)
		}
	}
	if !p.until.IsZero() {
		middle.until = day(of(p.until))
	}
	if !p.since.IsZero() && !p.until.IsZero() && !middle.since.Before(middle.until) {
		return []usagePart{p}
	}
	out := []usagePart{middle}
	if !middle.since.Equal(p.since) {
		out = append(out, usagePart{p.from, p.since, middle.since, 0})
	}
	if !middle.until.Equal(p.until) {
		out = append(out, usagePart{p.from, middle.until, p.until, 0})
	}
	return out
}

// total selects what usage of all owners is summed of.
func (p usagePart) total(q server.UsageQuery) (string, []any) {
	var f Filter
	table, at, less := `usage_totals s`, `s.slot`, ``
	unit, seconds := int64(usageSlot/time.Microsecond), `s.slot * 1800`
	switch p.from {
	case fromDays:
		table, at, seconds = `usage_days s`, `s.day`, `s.day * 86400 - s.zone * 1800`
		unit *= daySlots
		f.Add(`s.zone = ?`, p.zone)
	case fromDifferences:
		table, less = `usage_sums s`, ` - s.t_`
		f.Add(`s.total = 0`)
	}
	shift := time.Duration(p.zone) * usageSlot
	if q.Model != "" {
		f.Add(`s.model = ?`, q.Model)
	}
	if !p.since.IsZero() {
		f.Add(at+` >= ?`, floor(p.since.Add(shift).UnixMicro(), unit))
	}
	if !p.until.IsZero() {
		f.Add(at+` < ?`, floor(p.until.Add(shift).UnixMicro(), unit))
	}
	columns := `0 AS owner, '' AS project_hash, '' AS project, '' AS machine, s.model AS model, s.long AS long, ` +
		seconds + ` AS at`
	for _, sum := range []string{
		"answers", "input", "output", "cache_read", "cache_write_5m", "cache_write_1h", "searches",
	} {
		columns += `, s.` + sum
		if less != "" {
			columns += less + sum
		}
		columns += ` AS ` + sum
	}
	return `SELECT ` + columns + `, '' AS session_id FROM ` + table + ` ` + f.Where(), f.Args
}
