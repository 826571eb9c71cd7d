package web

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/web/chart"
	"github.com/ccship/ccship/server/web/page"
)

// usageOf sums what answers used.
type usageOf interface {
	Usage(ctx context.Context, scope server.Scope, q server.UsageQuery) ([]server.UsageRow, error)
}

// heatOf draws when work was done: by hour of the week for what q chooses, and a year of days.
func heatOf(ctx context.Context, st usageOf, scope server.Scope, q server.UsageQuery,
	now time.Time) (byHour, byDay template.HTML, err error) {
	q.By = []string{"hour"}
	hours, err := st.Usage(ctx, scope, q)
	if err != nil {
		return "", "", err
	}
	answers := func(f float64) string { return page.Count(int64(f), "answer") }
	week := chart.Week{ID: "week", Title: "Activity by hour", Desc: "Responses in each hour of the week.", Format: answers}
	for _, h := range hours {
		if h.Hour >= 0 && h.Hour < 7*24 {
			week.Hours[h.Hour/24][h.Hour%24] += float64(h.Tokens.Answers)
		}
	}
	q.By, q.Since = []string{"day"}, dayOf(now.AddDate(-1, 0, -7), q.Zone)
	days, err := st.Usage(ctx, scope, q)
	if err != nil {
		return "", "", err
	}
	year := chart.Year{ID: "year", Title: "Activity in the last year", Desc: "Responses on each day.",
		Last: now.Add(q.Zone).UTC(), Days: map[string]float64{}, Format: answers}
	for _, d := range days {
		year.Days[d.Day] += float64(d.Tokens.Answers)
	}
	return week.SVG(), year.SVG(), nil
}

// dayOf returns when the day of a time begins in a zone. Sums know whole days: in part of one, answers would be
// counted.
func dayOf(at time.Time, zone time.Duration) time.Time {
	return at.Add(zone).UTC().Truncate(24 * time.Hour).Add(-zone)
}

func (p *homePages) most() derive.TopFinder {
	return derive.TopFinder{Store: p.store, Prices: p.Prices, Now: p.now}
}

// topRows returns the rows of sessions that have the most of something.
func (p *homePages) topRows(list []derive.TopSession) []row {
	found := make([]server.FoundSession, len(list))
	for i, x := range list {
		found[i] = x.FoundSession
	}
	rows := p.rows(found, nil, nil, nil)
	for i, x := range list {
		rows[i].Tokens, rows[i].Cost, rows[i].Day = x.Tokens, x.Cost, true
	}
	return rows
}

// activity is when work was done, and which sessions took the most.
type activity struct {
	page.Layout
	Week, Year template.HTML
	Tops       []top
	Bare       bool
}

// top is a short list of sessions that have the most of something.
type top struct {
	Name, URL string
	Sessions  []topRow
}

type topRow struct {
	row
	Value string
}

// fewTop is how many sessions each list of the most has.
const fewTop = 5

// activity is GET /activity?bare: as a piece of the list or as a page of its own.
func (p *homePages) activity(w http.ResponseWriter, r *http.Request, who server.Login) error {
	scope, now := server.ScopeOf(who.User), p.now()
	a := activity{Layout: p.site.Layout(r, who, "Activity", "sessions"), Bare: r.URL.Query().Get("bare") != ""}
	q := server.UsageQuery{Zone: page.Zone(r), Since: dayOf(now.Add(-derive.BackOf), page.Zone(r))}
	var err error
	if a.Week, a.Year, err = heatOf(r.Context(), p.store, scope, q, now); err != nil {
		return err
	}
	tops := []struct {
		view, name string
		value      func(*row) string
	}{
		{"costly", "Most expensive", func(s *row) string { return page.Cost(s.Cost) }},
		{"tokens", "Most tokens", func(s *row) string { return page.Tokens(s.Tokens.All()) }},
		{"long", "Longest", func(s *row) string { return page.Span(s.Summary.Started, s.Summary.Ended) }},
	}
	var of []string
	for _, x := range tops {
		of = append(of, server.OrderOf(x.view))
	}
	lists, err := p.most().Each(r.Context(), scope, server.SessionQuery{Page: server.Page{Limit: fewTop}}, of...)
	if err != nil {
		return err
	}
	for i, x := range tops {
		list := p.topRows(lists[i])
		if err := p.mark(r.Context(), who.User.ID, []group{{Sessions: list}}); err != nil {
			return err
		}
		t := top{Name: x.name, URL: p.site.Base + page.Address("/", nil, "view", x.view)}
		for i := range list {
			t.Sessions = append(t.Sessions, topRow{list[i], x.value(&list[i])})
		}
		a.Tops = append(a.Tops, t)
	}
	p.site.Render(w, http.StatusOK, "activity.html", a)
	return nil
}

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
