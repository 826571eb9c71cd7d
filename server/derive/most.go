package derive

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/transcript"
)

// What there can be the most of.
const (
	ByCost   = "cost"
	ByTokens = "tokens"
	ByTime   = "time" // between the first and the last record
)

// BackOf is how far back sessions are looked for, unless the query says.
const BackOf = 90 * 24 * time.Hour

// topStore is what is read.
type topStore interface {
	Find(ctx context.Context, scope server.Scope, q server.SessionQuery) (server.Found, error)
	Usage(ctx context.Context, scope server.Scope, q server.UsageQuery) ([]server.UsageRow, error)
}

// TopSession is one that was found, with what it and its agents used in the time that the query is about.
type TopSession struct {
	server.FoundSession
	Tokens server.Tokens
	Cost   transcript.Cost
}

// Known is a stream as lists have it. scope sees it.
func Known(ctx context.Context, st server.SessionFinder, scope server.Scope,
	x server.Session) (server.FoundSession, error) {
	found, err := st.Find(ctx, scope, server.SessionQuery{Page: server.Page{Limit: 10}, Names: []string{x.SessionID},
		Machine: &x.Machine, User: x.Owner, Agents: true})
	for _, f := range found.List {
		if f.ID == x.ID {
			return f, err
		}
	}
	return server.FoundSession{Session: x}, err
}

type sum struct {
	tokens server.Tokens
	cost   transcript.Cost
}

// named is a session's name as sums know it. An agent's transcript counts for its session.
type named struct {
	owner   int64
	session string
}

// TopFinder finds sessions.
type TopFinder struct {
	Store  topStore
	Prices *transcript.Prices // what tokens cost
	Now    func() time.Time
}

// Find lists the q.Limit sessions of those that q chooses which have the most of something, in that order.
func (f TopFinder) Find(ctx context.Context, scope server.Scope, q server.SessionQuery,
	of string) ([]TopSession, error) {
	lists, err := f.Each(ctx, scope, q, of)
	return lists[0], err
}

// Each is Find for several things that there can be the most of, from one look at what was used.
func (f TopFinder) Each(
	ctx context.Context, scope server.Scope, q server.SessionQuery, of ...string,
) ([][]TopSession, error) {
	if q.Since.IsZero() {
		q.Since = f.Now().Add(-BackOf)
	}
	sums, err := f.sums(ctx, scope, q)
	out := make([][]TopSession, len(of))
	for i := range of {
		if err == nil {
			out[i], err = f.of(ctx, scope, q, sums, of[i])
		}
	}
	return out, err
}

// of lists the sessions that have the most of something, by what they used.
func (f TopFinder) of(ctx context.Context, scope server.Scope, q server.SessionQuery, sums map[named]sum,
	of string) ([]TopSession, error) {
	most := q.Limit
	value := map[string]func(sum) float64{
		ByCost: func(s sum) float64 { return s.cost.USD }, ByTokens: func(s sum) float64 { return float64(s.tokens.All()) },
	}[of]
	if q.Page = (server.Page{Limit: most, Longest: true}); value != nil {
		if q.Names = names(sums, value, most); len(q.Names) == 0 {
			return nil, nil
		}
		q.Page = server.Page{Limit: 4 * most, Recent: true} // one name may be that of several users, on several machines
	}
	found, err := f.Store.Find(ctx, scope, q)
	if err != nil {
		return nil, err
	}
	out := make([]TopSession, len(found.List))
	for i, x := range found.List {
		s := sums[named{x.Owner, x.SessionID}]
		out[i] = TopSession{x, s.tokens, s.cost}
	}
	if value != nil {
		slices.SortStableFunc(out, func(a, b TopSession) int {
			return cmp.Compare(value(sum{b.Tokens, b.Cost}), value(sum{a.Tokens, a.Cost}))
		})
	}
	return out[:min(len(out), most)], nil
}

// List is Find without what they used.
func (f TopFinder) List(ctx context.Context, scope server.Scope, q server.SessionQuery,
	of string) ([]server.FoundSession, error) {
	list, err := f.Find(ctx, scope, q, of)
	out := make([]server.FoundSession, len(list))
	for i := range list {
		out[i] = list[i].FoundSession
	}
	return out, err
}

// sums are what sessions used, with their agents.
func (f TopFinder) sums(ctx context.Context, scope server.Scope, q server.SessionQuery) (map[named]sum, error) {
	rows, err := f.Store.Usage(ctx, scope, server.UsageQuery{By: []string{"user", "session", "model", "long"},
		Since: q.Since, Until: q.Until, Project: q.Project, Machine: q.Machine, User: q.User, Model: q.Model})
	out := map[named]sum{}
	for _, r := range rows {
		session, _, _ := strings.Cut(r.Session, "/")
		at := named{r.User, session}
		s := out[at]
		out[at] = sum{s.tokens.Add(r.Tokens), s.cost.Plus(Cost(f.Prices, r))}
	}
	return out, err
}

// names are the names with the largest values, regardless of who has a session of that name.
func names(sums map[named]sum, of func(sum) float64, most int) []string {
	values := map[string]float64{}
	var out []string
	for at, s := range sums {
		v := of(s)
		if v <= 0 {
			continue
		}
		if _, known := values[at.session]; !known {
			out = append(out, at.session)
		}
		values[at.session] = max(values[at.session], v)
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(values[b], values[a]), cmp.Compare(a, b)) })
	return out[:min(len(out), most)]
}
