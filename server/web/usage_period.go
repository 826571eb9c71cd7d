package web

import (
	"context"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
)

// inPeriod sums what was used in the period of a. When nothing was, the period becomes the one that ends with the
// newest day of which there is something.
func (v *Viewer) inPeriod(ctx context.Context, scope server.Scope, a *usageAsk,
	p *usagePage) ([]server.UsageRow, error) {
	rows, err := v.store.Usage(ctx, scope, with(a.query, a.columns()...))
	if err != nil || len(rows) > 0 || a.days == 0 {
		return rows, err
	}
	always := a.query
	always.Since = time.Time{}
	days, err := v.store.Usage(ctx, scope, with(always, "day"))
	if err != nil {
		return nil, err
	}
	newest := ""
	for _, d := range days {
		newest = max(newest, d.Day)
	}
	last, err := time.Parse(time.DateOnly, newest)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // nothing has ever been used, at any time that is known
	}
	a.end(last)
	a.query.Until, p.Moved = last.AddDate(0, 0, 1).Add(-a.query.Zone), last.Format("2 January 2006")
	return v.store.Usage(ctx, scope, with(a.query, a.columns()...))
}

// end sets the last day of the period, as its midnight in the reader's zone.
func (a *usageAsk) end(last time.Time) {
	a.last = last
	if a.days > 0 {
		a.query.Since = last.AddDate(0, 0, 1-a.days).Add(-a.query.Zone)
	}
}

// period returns what a sums over, in words.
func (a *usageAsk) period(moved string) string {
	switch {
	case a.days == 0:
		return "all time"
	case moved != "":
		return fmt.Sprintf("the %d days up to %s", a.days, moved)
	}
	return fmt.Sprintf("the last %d days", a.days)
}
