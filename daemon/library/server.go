package library

import (
	"context"
	"time"

	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/transcript"
)

// Server asks a server for the sums of the caller's own sessions, from all machines, by the server's price list.
func Server(ctx context.Context, client *remote.Client, q Query) (Report, error) {
	r := Report{Source: fromServer, By: q.By, Zone: q.Zone.String(), Rows: []Row{}, Faults: []Fault{}}
	hosts := map[string]string{}
	if q.by(Machine) {
		machines, err := client.Machines(ctx)
		if err != nil {
			return r, err
		}
		for _, m := range machines {
			hosts[m.Machine] = m.Host
		}
	}
	at := map[Row]int{}
	for _, span := range spans(q, time.Now()) {
		sums, err := client.Usage(ctx, span)
		if err != nil {
			return r, err
		}
		r.Prices = sums.Prices
		for _, s := range sums.Rows {
			r.take(at, s, hosts[s.Machine])
		}
	}
	r.finish()
	return r, nil
}

// take adds a row of the server. An agent's answers are those of its session.
func (r *Report) take(at map[Row]int, s remote.UsageRow, host string) {
	names := Row{
		Day: s.Day, ProjectHash: s.ProjectHash, Project: s.Project, Model: s.Model, Machine: s.Machine, Host: host,
	}
	if s.Session != "" {
		names.Session = transcript.MainSession(s.Session, "")
	}
	u := transcript.Usage{Input: s.Input, Output: s.Output, CacheRead: s.CacheRead, CacheWrite5m: s.CacheWrite5m,
		CacheWrite1h: s.CacheWrite1h}
	cost := transcript.Cost{Unpriced: s.Unpriced}
	if s.Cost != nil {
		cost.USD, cost.Priced = *s.Cost, u.Total()-s.Unpriced
	}
	r.row(at, names).add(s.Answers, u, cost)
	r.Total.add(s.Answers, u, cost)
}

// spans are the requests that answer a query. A server knows only zones without a summer time, so days of a zone that
// has one are asked for in one request for each half-year, back to when the first transcripts were written.
func spans(q Query, now time.Time) []remote.UsageQuery {
	one := remote.UsageQuery{By: q.By, Since: q.Since, Until: q.Until, User: remote.Me}
	if !q.by(Day) {
		return []remote.UsageQuery{one}
	}
	from, end := q.Since, q.Until
	if first := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC); from.Before(first) {
		from = first
	}
	if end.IsZero() || end.After(now) {
		end = now
	}
	var out []remote.UsageQuery
	for t := from.In(q.Zone); ; {
		_, offset := t.Zone()
		part := one
		part.Zone = time.Duration(offset) * time.Second
		if len(out) > 0 {
			part.Since = t
		}
		_, change := t.ZoneBounds()
		if change.IsZero() || !change.Before(end) {
			return append(out, part)
		}
		part.Until = change
		out = append(out, part)
		t = change
	}
}
