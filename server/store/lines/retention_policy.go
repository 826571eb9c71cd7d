package lines

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// Policy implements server.Retention but for Vacuum. It is set once, when a store opens.
type Policy struct {
	reader sqlstore.Dialect
	db     sqlstore.Writer
	lines  *Lines
	cooler *Tier
}

// NewPolicy returns the policy of a store.
func NewPolicy(db sqlstore.DB, lines *Lines, cooler *Tier) Policy {
	return Policy{reader: db, db: sqlstore.Writer{DB: db, How: sqlstore.Erase | sqlstore.Patient},
		lines: lines, cooler: cooler}
}

// errRule refuses a rule that says nothing that can be done.
var errRule = errors.New("no such rule")

// RetentionRules implements server.Retention.
func (p *Policy) RetentionRules(ctx context.Context) ([]server.RetentionRule, error) {
	out, err := sqlstore.List(ctx, p.reader, `SELECT id, what, action, age, above, user_id, project, checkpoints, usage,
  asked_by, at FROM retention_rules ORDER BY id`, nil, func(row sqlstore.Scanner) (r server.RetentionRule, err error) {
		var age, checkpoints, usage, at int64
		err = row.Scan(&r.ID, &r.What, &r.Action, &age, &r.Over, &r.User, &r.Project, &checkpoints, &usage, &r.By, &at)
		r.Age, r.At = time.Duration(age)*time.Microsecond, sqlstore.Moment(at)
		r.Checkpoints, r.Usage = checkpoints != 0, usage != 0
		return r, err
	})
	return out, sqlstore.Wrap(err, "list rules of retention")
}

// AddRetentionRule implements server.Retention.
func (p *Policy) AddRetentionRule(ctx context.Context, r server.RetentionRule) (id int64, err error) {
	switch {
	case r.What != server.RetireGenerations && r.What != server.RetireSessions,
		r.Action != server.ActionDrop && r.Action != server.ActionCold,
		r.Age < 0, r.Over < 0, r.Age == 0 && r.Over == 0:
		return 0, fmt.Errorf("add rule of retention: %w", errRule)
	}
	err = p.db.Write(ctx, func(d sqlstore.Dialect) error {
		if id, err = sqlstore.Number(ctx, d, `SELECT coalesce(max(id), 0) + 1 FROM retention_rules`); err != nil {
			return err
		}
		_, err := d.Exec(ctx, `INSERT INTO retention_rules (id, what, action, age, above, user_id, project, checkpoints,
  usage, asked_by, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, id, r.What, r.Action, r.Age.Microseconds(), r.Over,
			r.User, sqlstore.CleanText(r.Project), sqlstore.Flag(r.Checkpoints), sqlstore.Flag(r.Usage),
			sqlstore.CleanText(r.By), sqlstore.Micros(r.At))
		return err
	})
	return id, sqlstore.Wrap(err, "add rule of retention")
}

// RemoveRetentionRule implements server.Retention.
func (p *Policy) RemoveRetentionRule(ctx context.Context, id int64) error {
	return p.remove(ctx, "retention_rules", id)
}

func (p *Policy) remove(ctx context.Context, table string, id int64) error {
	return sqlstore.Wrap(p.db.Edit(ctx, `DELETE FROM `+table+` WHERE id = ?`, id), "remove number %d", id)
}

// Holds implements server.Retention.
func (p *Policy) Holds(ctx context.Context) ([]server.Hold, error) { return holds(ctx, p.reader) }

func holds(ctx context.Context, d sqlstore.Dialect) ([]server.Hold, error) {
	out, err := sqlstore.List(ctx, d, `SELECT id, user_id, project, session_id, asked_by, why, at FROM retention_holds
ORDER BY id`, nil, func(row sqlstore.Scanner) (h server.Hold, err error) {
		var at int64
		err = row.Scan(&h.ID, &h.User, &h.Project, &h.Session, &h.By, &h.Why, &at)
		h.At = sqlstore.Moment(at)
		return h, err
	})
	return out, sqlstore.Wrap(err, "list holds")
}

// AddHold implements server.Retention.
func (p *Policy) AddHold(ctx context.Context, h server.Hold) (id int64, err error) {
	err = p.db.Write(ctx, func(d sqlstore.Dialect) error {
		if err := sqlstore.LockRetention(ctx, d); err != nil {
			return err
		}
		if id, err = sqlstore.Number(ctx, d, `SELECT coalesce(max(id), 0) + 1 FROM retention_holds`); err != nil {
			return err
		}
		_, err := d.Exec(ctx, `INSERT INTO retention_holds (id, user_id, project, session_id, asked_by, why, at)
VALUES (?, ?, ?, ?, ?, ?, ?)`, id, h.User, sqlstore.CleanText(h.Project), sqlstore.CleanText(h.Session),
			sqlstore.CleanText(h.By), sqlstore.CleanText(h.Why), sqlstore.Micros(h.At))
		return err
	})
	return id, sqlstore.Wrap(err, "hold")
}

// RemoveHold implements server.Retention.
func (p *Policy) RemoveHold(ctx context.Context, id int64) error {
	return p.remove(ctx, "retention_holds", id)
}

// RetentionLog implements server.Retention.
func (p *Policy) RetentionLog(ctx context.Context, limit int) ([]server.RetentionEntry, error) {
	out, err := sqlstore.List(ctx, p.reader, `SELECT owner, run, at, asked_by, rule, says, action, session_id, machine,
  generations, lines, bytes, files FROM retention_log ORDER BY at DESC, owner, stream, rule LIMIT ?`, []any{limit},
		func(row sqlstore.Scanner) (e server.RetentionEntry, err error) {
			var run, at int64
			err = row.Scan(&e.User, &run, &at, &e.By, &e.Rule, &e.Says, &e.Action, &e.SessionID, &e.Machine, &e.Generations,
				&e.Lines, &e.Bytes, &e.Files)
			e.Run, e.At = sqlstore.Moment(run), sqlstore.Moment(at)
			return e, err
		})
	return out, sqlstore.Wrap(err, "read the log of retention")
}

// due reports whether the rules have rested for long enough.
func (p *Policy) due(ctx context.Context, how server.RetireOptions) (bool, error) {
	if how.Every == 0 {
		return true, nil
	}
	until, err := sqlstore.Number(ctx, p.reader, `SELECT until FROM leases WHERE name = 'retention rests'`)
	left := time.Until(sqlstore.Moment(until)) // above Every: by a clock that was ahead
	return left <= 0 || left > how.Every, sqlstore.Wrap(err, "look when rules are due")
}

// rest has the rules rest, and notes by which time they were applied. One that was interrupted goes on as soon as it
// can.
func (p *Policy) rest(ctx context.Context, how server.RetireOptions) error {
	if how.Every == 0 {
		return nil
	}
	err := p.db.Change(ctx, `INSERT INTO leases (name, holder, until) VALUES ('retention rests', ?, ?),
  ('retention clock', ?, ?) ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until`,
		p.cooler.self, sqlstore.Micros(time.Now().Add(how.Every)), p.cooler.self, sqlstore.Micros(how.Now))
	return sqlstore.Wrap(err, "note when rules are due")
}

// retiring is the lease of who applies rules, leaseFor how long a process that died keeps others from it. Two that
// apply them at once do no harm: what one of them removes, the other finds gone.
const (
	retiring = "retention"
	leaseFor = 10 * time.Second
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

// mostForward is how far the clock of rules moves between two applications: behind a long weekend, or a laptop's sleep.
const mostForward = 3 * 24 * time.Hour

// clock returns the time that unattended rules use. It is now, but at most mostForward after the last application
// (before the first: after the newest line): a machine whose clock is years ahead must not drop everything. A long stop
// is caught up with in some days. By hand, now is used: a person has seen the counts.
func (p *Policy) clock(ctx context.Context, now time.Time) (time.Time, error) {
	last, err := sqlstore.Number(ctx, p.reader, `SELECT coalesce((SELECT until FROM leases WHERE name = 'retention clock'),
  (SELECT max(last_received) FROM streams), CAST(? AS bigint))`, sqlstore.Micros(now))
	if err != nil {
		return now, fmt.Errorf("look when rules were applied: %w", err)
	}
	if most := sqlstore.Moment(last).Add(mostForward); most.Before(now) {
		return most, nil
	}
	return now, nil
}
