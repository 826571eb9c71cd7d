package lines

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// KeptUntil implements server.Retention. Rules with a size alone have no date.
func (p *Policy) KeptUntil(ctx context.Context, id int64, now time.Time) (k server.RetentionOutlook, err error) {
	rules, err := p.RetentionRules(ctx)
	if err != nil {
		return k, err
	}
	list, err := sqlstore.List(ctx, p.reader, selectStreams+` WHERE s.id = ?`, []any{id}, scanStream)
	if err != nil || len(list) == 0 {
		return k, err
	}
	s := list[0]
	err = p.reader.Query(ctx, `SELECT retired, retired_by FROM streams WHERE owner = ? AND id = ?`,
		[]any{s.owner, s.id}, func(row sqlstore.Scanner) error {
			var at int64
			err := row.Scan(&at, &k.Rule)
			k.Retired = sqlstore.Moment(at)
			return err
		})
	if err == nil {
		k.Lines, err = sqlstore.Number(ctx, p.reader, `SELECT CAST(coalesce(sum(lines), 0) AS bigint) FROM retired
WHERE owner = ? AND stream = ?`, s.owner, s.id)
	}
	if err != nil {
		return k, fmt.Errorf("look for retired lines: %w", err)
	}
	if s.last <= sqlstore.Micros(k.Retired) {
		return k, nil // nothing came since it was dropped
	}
	return k, p.outlook(ctx, s, rules, now, &k)
}

// selectUnit are the streams of a session: the session itself, its further files, and what names it as its parent.
const selectUnit = selectStreams + ` WHERE s.owner = ? AND (s.id = ? OR s.session_id = ? OR s.parent = ?)`

// unitOf is the session that a stream belongs to.
func (p *Policy) unitOf(ctx context.Context, s *stream) (*unit, error) {
	name := root(s.session, s.parent)
	list, err := sqlstore.List(ctx, p.reader, selectUnit, []any{s.owner, s.id, name, name}, scanStream)
	if err != nil {
		return nil, fmt.Errorf("look for the session's agents: %w", err)
	}
	for _, u := range unitsOf(list) {
		if u.name == name {
			return u, nil
		}
	}
	return unitsOf([]*stream{s})[0], nil
}

// outlook says what the rules will do to a session, if it rests from now on.
func (p *Policy) outlook(ctx context.Context, s *stream, rules []server.RetentionRule, now time.Time,
	k *server.RetentionOutlook) error {
	var family []*unit
	var g *guard
	for i := range rules {
		r := &rules[i]
		if r.What != server.RetireSessions || r.User != 0 && r.User != s.owner {
			continue
		}
		if family == nil {
			var err error
			if family, g, err = p.familyOf(ctx, s, now); err != nil {
				return err
			}
		}
		if !family[0].in(r.Project) {
			continue
		}
		until, why := dueOf(family, g, r)
		switch {
		case why != "":
			k.Kept = why
		case r.Age > 0 && (k.Until.IsZero() || until.Before(k.Until)):
			k.Until, k.Due = until, r.Says()
		}
	}
	if k.Due != "" {
		k.Kept = ""
	}
	return nil
}

// familyOf is the session of a stream, first, and those that share history with it, and what keeps them.
func (p *Policy) familyOf(ctx context.Context, s *stream, now time.Time) (family []*unit, g *guard, err error) {
	u, err := p.unitOf(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	gone, err := p.goneStreams(ctx, s.owner)
	if err != nil {
		return nil, nil, err
	}
	family, ids := []*unit{u}, u.ids()
	for i := 0; i < len(family); i++ {
		kin, err := p.related(ctx, family[i])
		if err != nil {
			return nil, nil, err
		}
		for _, id := range kin {
			if gone[id] || slices.Contains(ids, id) {
				continue
			}
			list, err := sqlstore.List(ctx, p.reader, selectStreams+` WHERE s.owner = ? AND s.id = ?`,
				[]any{s.owner, id}, scanStream)
			if err != nil || len(list) == 0 {
				return nil, nil, err
			}
			if u, err = p.unitOf(ctx, list[0]); err != nil {
				return nil, nil, err
			}
			family, ids = append(family, u), append(ids, u.ids()...)
		}
	}
	g, err = guardOf(ctx, p.reader, s.owner, ids, now)
	return family, g, err
}

// dueOf is when a rule takes the first of a family, or why it does not. Forks go together or not at all.
func dueOf(family []*unit, g *guard, r *server.RetentionRule) (until time.Time, why string) {
	for i, u := range family {
		why := g.needs(u, r)
		if i > 0 && (why != "" || !u.in(r.Project)) {
			why = server.KeptFork
		}
		if why != "" {
			return until, why
		}
		due := sqlstore.Moment(max(u.active+r.Age.Microseconds(), u.last+leastRest.Microseconds()))
		if due.After(until) {
			until = due
		}
		if r.Action == server.ActionCold {
			break // nothing of it is lost
		}
	}
	return until, ""
}
