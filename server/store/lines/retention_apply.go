package lines

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// deriveAfter is how long a stream waits to be derived again while retention still removes lines of it.
const deriveAfter = time.Minute

// errSessionChanged reports that a session changed, or is kept now. The next application sees it as it is then.
var errSessionChanged = errors.New("it changed meanwhile")

// Retire implements server.Retention.
func (p *Policy) Retire(ctx context.Context, how server.RetireOptions) (report server.RetentionReport, err error) {
	rules, err := p.RetentionRules(ctx)
	if err != nil || len(rules) == 0 {
		return report, err
	}
	if how.Every > 0 {
		if how.Now, err = p.clock(ctx, how.Now); err != nil {
			return report, err
		}
	}
	if !how.Dry {
		mine, err := p.due(ctx, how)
		if err == nil && mine {
			mine, err = p.cooler.lease(ctx, retiring, leaseFor)
		}
		if err != nil || !mine {
			return server.RetentionReport{Busy: !mine}, err
		}
		defer func() {
			err = errors.Join(err, p.cooler.release(ctx, retiring))
			if ctx.Err() == nil { // what failed is no reason to try all again at once
				err = errors.Join(err, p.rest(ctx, how))
			}
		}()
	}
	owners, err := sqlstore.Numbers(ctx, p.reader, `SELECT DISTINCT owner FROM streams ORDER BY owner`)
	if err != nil {
		return report, fmt.Errorf("list users: %w", err)
	}
	var failed failures
	for _, owner := range owners {
		if err := p.retireOwner(ctx, how, rules, owner, &report); err != nil {
			failed.add(fmt.Errorf("apply retention: %w", err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return report, failed.with(nil)
}

// retireOwner applies the rules to what one owner has. What fails for one session ends nothing for the others.
func (p *Policy) retireOwner(ctx context.Context, how server.RetireOptions, rules []server.RetentionRule, owner int64,
	report *server.RetentionReport) (err error) {
	var failed failures
	x := &pass{Policy: p, how: how, owner: owner, taken: map[*unit]bool{}, report: report}
	for i := range rules {
		r := &rules[i]
		if r.User != 0 && r.User != owner {
			continue
		}
		if x.units == nil { // of a user without rules nothing is read
			if x.units, err = p.units(ctx, owner); err != nil {
				return err
			}
			if x.guard, err = guardOf(ctx, p.reader, owner, nil, how.Now); err != nil {
				return err
			}
			if x.gone, err = p.goneStreams(ctx, owner); err != nil {
				return err
			}
		}
		chosen, err := x.choose(ctx, r)
		if err != nil {
			return failed.with(err)
		}
		for _, t := range chosen {
			if err := x.take(ctx, t); err != nil {
				failed.add(fmt.Errorf("session %s: %w", t.unit.name, err))
			}
			if ctx.Err() != nil {
				return failed.with(nil)
			}
		}
	}
	return failed.with(nil)
}

// take applies a rule to one session, or counts it.
func (x *pass) take(ctx context.Context, t *target) (err error) {
	count := t.count
	if !x.how.Dry {
		if mine, err := x.cooler.lease(ctx, retiring, leaseFor); err != nil || !mine {
			return errors.Join(err, ctx.Err())
		}
		a := &applying{pass: x, target: t, seen: map[Place]bool{},
			done: server.RetentionCount{Rule: t.rule.ID, User: t.unit.owner}}
		err = a.apply(ctx)
		if count = a.done; count.Any() {
			count.Sessions = 1
		}
	}
	switch {
	case t.rule.Action != server.ActionDrop:
	case t.rule.What == server.RetireGenerations: // for the sizes of rules that follow, and for what they would count
		t.unit.stored -= count.Bytes
		for _, w := range t.work {
			if err != nil {
				break
			}
			w.stream.gone, w.stream.rest = append(w.stream.gone, w.pieces...), max(w.stream.rest, w.before+1)
		}
	case err == nil:
		x.taken[t.unit] = true
		for _, id := range t.unit.ids() {
			x.gone[id] = true
		}
	}
	x.addCount(count)
	if errors.Is(err, errSessionChanged) {
		return nil
	}
	return err
}

// addCount reports what a rule took, or would take.
func (x *pass) addCount(c server.RetentionCount) {
	if !c.Any() {
		return
	}
	if x.how.Progress != nil {
		x.how.Progress(c)
	}
	for i := range x.report.Counts {
		if o := &x.report.Counts[i]; o.Rule == c.Rule && o.User == c.User {
			o.Add(c)
			return
		}
	}
	x.report.Counts = append(x.report.Counts, c)
}

// applying is a rule on its way through a session.
type applying struct {
	*pass
	*target
	done server.RetentionCount
	seen map[Place]bool // generations that count already
}

// apply removes what the rule takes of the session, or moves it to cold storage.
func (a *applying) apply(ctx context.Context) error {
	if a.rule.Action == server.ActionCold {
		return a.cool(ctx)
	}
	whole := a.rule.What == server.RetireSessions
	if whole { // first: a reader learns why the session has gaps, and what follows is done even after a crash
		for _, s := range a.unit.streams {
			if err := a.markDropped(ctx, s); err != nil {
				return err
			}
		}
	}
	for _, w := range a.work {
		if err := a.takeStream(ctx, w); err != nil {
			return err
		}
	}
	for _, f := range a.files {
		if err := a.dropFile(ctx, f); err != nil {
			return err
		}
	}
	for _, w := range a.work {
		s := w.stream
		a.db.Tell(server.Change{Stream: s.id, SessionID: s.session, Machine: s.machine, Owner: s.owner, Project: s.hash,
			At: a.how.Now})
	}
	return nil
}

// write runs fn in a transaction in which no stream of the session has gone on, and nothing keeps the session since.
func (a *applying) write(ctx context.Context, s *stream, fn func(sqlstore.Dialect) error) error {
	if err := a.lines.step("retire"); err != nil {
		return err
	}
	err := a.db.Write(ctx, func(d sqlstore.Dialect) error {
		if err := d.Hold(ctx, sqlstore.HeldStream, s.id); err != nil {
			return err
		}
		if err := d.Hold(ctx, sqlstore.HeldOwner, s.owner); err != nil {
			return err
		}
		if err := sqlstore.LockRetention(ctx, d); err != nil {
			return err
		}
		last, err := sqlstore.Number(ctx, sqlstore.Locked{Dialect: d},
			`SELECT last_received FROM streams WHERE owner = ? AND id = ?`, s.owner, s.id)
		if err != nil {
			return err
		}
		ids := a.unit.ids()
		newest, err := sqlstore.Number(ctx, d, `SELECT max(last_received) FROM streams
WHERE owner = ? AND id IN (`+sqlstore.Marks(len(ids))+`)`, append([]any{s.owner}, sqlstore.Values(ids)...)...)
		if err != nil {
			return err
		}
		if last != s.last || newest != a.unit.last {
			return errSessionChanged
		}
		g, err := guardOf(ctx, d, s.owner, ids, a.how.Now)
		if err != nil {
			return err
		}
		if g.keeps(a.unit, a.rule) != "" {
			return errSessionChanged
		}
		if err := a.lines.step("retire what nothing keeps"); err != nil {
			return err
		}
		return fn(d)
	})
	if err != nil {
		return err
	}
	return a.lines.step("retired")
}

// markDropped notes that a session is dropped, and removes what quotes its lines.
func (a *applying) markDropped(ctx context.Context, s *stream) error {
	return a.write(ctx, s, func(d sqlstore.Dialect) error {
		_, err := d.Exec(ctx, `UPDATE streams SET retired = ?, retired_by = ? WHERE owner = ? AND id = ?`,
			sqlstore.Micros(a.how.Now), a.rule.Says(), s.owner, s.id)
		if err != nil {
			return fmt.Errorf("note dropped session: %w", err)
		}
		if a.rule.Usage {
			if err := sqlstore.RemoveAnswers(ctx, d, sqlstore.OwnedStream{Stream: s.id, Owner: s.owner}); err != nil {
				return fmt.Errorf("remove usage: %w", err)
			}
		}
		return a.dropFromIndex(ctx, d, s)
	})
}

// dropFromIndex removes what is derived from lines that go, and lets the rest be derived again.
func (a *applying) dropFromIndex(ctx context.Context, d sqlstore.Dialect, s *stream) error {
	x := sqlstore.OwnedStream{Stream: s.id, Owner: s.owner}
	err := sqlstore.ScrubLater(ctx, d)
	switch {
	case err != nil:
	case a.rule.What == server.RetireSessions:
		err = sqlstore.ClearQuotes(ctx, d, x)
	default:
		err = sqlstore.ClearTexts(ctx, d, x, time.Now().Add(deriveAfter))
	}
	return sqlstore.Wrap(err, "remove what is derived")
}

// takeStream removes what a rule takes of a stream.
func (a *applying) takeStream(ctx context.Context, w work) error {
	for _, p := range w.pieces {
		if err := a.takePiece(ctx, w.stream, p); err != nil {
			return err
		}
	}
	if a.rule.What == server.RetireGenerations && len(w.pieces) > 0 {
		err := a.db.Change(ctx, `UPDATE streams SET leased = 0 WHERE owner = ? AND id = ?`, w.stream.owner, w.stream.id)
		if err != nil {
			return fmt.Errorf("have it derived again: %w", err)
		}
	}
	if w.replaced == 0 {
		return nil
	}
	var gone server.RetentionCount
	err := a.write(ctx, w.stream, func(d sqlstore.Dialect) (err error) {
		if gone, err = a.countReplaced(ctx, d, &w); err != nil {
			return err
		}
		if _, err := d.Exec(ctx, `DELETE`+ofReplaced, w.ofReplaced()...); err != nil {
			return fmt.Errorf("remove replaced lines: %w", err)
		}
		return a.log(ctx, d, w.stream, gone)
	})
	if err == nil {
		a.done.Add(gone)
	}
	return err
}

// log notes what was done to a stream, in the transaction that did it.
func (a *applying) log(ctx context.Context, d sqlstore.Dialect, s *stream, n server.RetentionCount) error {
	_, err := d.Exec(ctx, `INSERT INTO retention_log AS l (owner, run, stream, rule, session_id, machine, asked_by, says,
  action, at, generations, lines, bytes, files) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (owner, run, stream, rule) DO UPDATE SET at = excluded.at,
  generations = l.generations + excluded.generations, lines = l.lines + excluded.lines,
  bytes = l.bytes + excluded.bytes, files = l.files + excluded.files`,
		s.owner, sqlstore.Micros(a.how.Now), s.id, a.rule.ID, s.session, s.machine, sqlstore.CleanText(a.how.By),
		a.rule.Says(), a.rule.Action, sqlstore.Micros(time.Now()), n.Generations, n.Lines, n.Bytes, n.Files)
	return sqlstore.Wrap(err, "write the log of retention")
}
