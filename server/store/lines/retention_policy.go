package lines

import (
	"context"
	"errors"
	"fmt"
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
