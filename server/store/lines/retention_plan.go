package lines

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// target is what a rule takes of one session.
type target struct {
	rule  *server.RetentionRule
	unit  *unit
	work  []work
	files []file
	count server.RetentionCount
}

// work is what a rule takes of one stream.
type work struct {
	stream   *stream
	pieces   []piece
	replaced int64 // rows of bytes that others replaced
	before   int64 // which were replaced before
}

// file is a content that only dropped sessions refer to.
type file struct{ id, size int64 }

// pass is one application of the rules to what one owner has.
type pass struct {
	*Policy
	how   server.RetireOptions
	owner int64
	units []*unit
	guard *guard
	taken map[*unit]bool
	gone  map[int64]bool // streams that were dropped before
	// several are streams with more than one generation, or with bytes that others replaced. For rules of generations.
	several map[int64]bool
	report  *server.RetentionReport
}

// choose finds what a rule takes.
func (x *pass) choose(ctx context.Context, r *server.RetentionRule) ([]*target, error) {
	if r.What == server.RetireGenerations {
		return x.chooseGenerations(ctx, r)
	}
	return x.chooseSessions(ctx, r)
}

// countKept counts sessions that a rule would take, were it not for a reason to keep them.
func (x *pass) countKept(r *server.RetentionRule, why string, n int64) {
	for i := range x.report.Kept {
		if k := &x.report.Kept[i]; k.Rule == r.ID && k.Why == why {
			k.Sessions += n
			return
		}
	}
	x.report.Kept = append(x.report.Kept, server.KeptCount{Rule: r.ID, Why: why, Sessions: n})
}

// cutoff returns the time since when something must have rested.
func (x *pass) cutoff(r *server.RetentionRule) int64 { return sqlstore.Micros(x.how.Now.Add(-r.Age)) }

// chooseSessions chooses whole sessions, the least recently active first.
func (x *pass) chooseSessions(ctx context.Context, r *server.RetentionRule) ([]*target, error) {
	total := int64(0)
	for _, u := range x.units {
		if u.in(r.Project) && !x.taken[u] {
			total += u.stored
		}
	}
	var chosen []*unit
	for _, u := range x.units {
		if u.active > x.cutoff(r) || r.Over > 0 && total <= r.Over {
			break
		}
		if !u.in(r.Project) || x.taken[u] || u.stored == 0 {
			continue
		}
		if why := x.guard.keeps(u, r); why != "" {
			x.countKept(r, why, 1)
			continue
		}
		chosen, total = append(chosen, u), total-u.stored
	}
	if r.Action == server.ActionDrop && len(chosen) > 0 {
		rest, kept, err := x.withoutForks(ctx, chosen, x.gone)
		if err != nil {
			return nil, err
		}
		if chosen = rest; len(kept) > 0 {
			x.countKept(r, server.KeptFork, int64(len(kept)))
		}
	}
	var out []*target
	for _, u := range chosen {
		t, err := x.plan(ctx, r, u)
		if err != nil {
			return nil, err
		}
		if t.count.Any() {
			out = append(out, t)
		}
	}
	return out, nil
}

// plan returns what a rule takes of a session: all of it, or of some streams what rewinds left.
func (x *pass) plan(ctx context.Context, r *server.RetentionRule, u *unit) (*target, error) {
	t := &target{rule: r, unit: u}
	for _, s := range u.streams {
		if r.What == server.RetireGenerations && !x.several[s.id] {
			continue
		}
		w, err := x.planStream(ctx, r, s)
		if err == nil && r.Action == server.ActionDrop {
			var n server.RetentionCount
			n, err = x.countReplaced(ctx, x.reader, &w)
			w.replaced = n.Lines
			t.count.Add(n)
		}
		if err != nil {
			return nil, err
		}
		t.add(w)
	}
	if r.What == server.RetireSessions {
		var err error
		if t.files, err = x.filesOf(ctx, u, r.Action); err != nil {
			return nil, err
		}
		for _, f := range t.files {
			t.count.Files, t.count.Bytes = t.count.Files+1, t.count.Bytes+f.size
		}
	}
	t.count.Rule, t.count.User = t.rule.ID, t.unit.owner
	if t.count.Any() {
		t.count.Sessions = 1
	}
	return t, nil
}

// planStream returns the lines that a rule takes of a stream.
func (x *pass) planStream(ctx context.Context, r *server.RetentionRule, s *stream) (w work, err error) {
	tr, err := x.tree(ctx, s)
	if err != nil {
		return w, err
	}
	w = work{stream: s, before: sqlstore.Micros(x.how.Now)}
	pieces := tr.all()
	if r.What == server.RetireGenerations {
		w.before = x.cutoff(r)
		pieces = slices.DeleteFunc(tr.superseded(), func(p piece) bool { return p.since > w.before })
		if r.Action == server.ActionDrop {
			named, err := x.checkpointed(ctx, s)
			if err != nil {
				return w, err
			}
			pieces = tr.without(pieces, named)
		}
	}
	for _, p := range s.gone {
		pieces = subtract(pieces, p.epoch, []server.Span{p.span})
	}
	count := x.measure
	if r.Action == server.ActionCold {
		count = x.movable
	}
	for _, p := range pieces {
		if err := count(ctx, s, &p); err != nil {
			return w, err
		}
		if p.lines > 0 {
			w.pieces = append(w.pieces, p)
		}
	}
	return w, nil
}

func (t *target) add(w work) {
	for _, p := range w.pieces {
		t.count.Generations++
		t.count.Lines, t.count.Bytes = t.count.Lines+p.lines, t.count.Bytes+p.bytes
	}
	if len(w.pieces) > 0 || w.replaced > 0 || t.rule.What == server.RetireSessions {
		t.work = append(t.work, w)
	}
}

// chooseGenerations chooses what rewinds left, of each session what was left first.
func (x *pass) chooseGenerations(ctx context.Context, r *server.RetentionRule) ([]*target, error) {
	var err error
	if x.several, err = x.rewritten(ctx); err != nil {
		return nil, err
	}
	var all []*target
	for _, u := range x.units {
		if !u.in(r.Project) || x.taken[u] ||
			!slices.ContainsFunc(u.streams, func(s *stream) bool { return x.several[s.id] }) {
			continue
		}
		t, err := x.plan(ctx, r, u)
		if err != nil {
			return nil, err
		}
		if !t.count.Any() {
			continue
		}
		if why := x.guard.keeps(u, r); why != "" {
			x.countKept(r, why, 1)
			continue
		}
		all = append(all, t)
	}
	return x.aboveSize(r, all), nil
}

// rewritten returns the streams of the owner with more than one generation, or with bytes that others replaced.
func (x *pass) rewritten(ctx context.Context) (map[int64]bool, error) {
	out := map[int64]bool{}
	for _, query := range []string{
		`SELECT stream FROM generations WHERE owner = ? GROUP BY stream HAVING count(*) > 1`,
		`SELECT DISTINCT stream FROM superseded WHERE owner = ?`,
	} {
		list, err := sqlstore.Numbers(ctx, x.reader, query, x.owner)
		if err != nil {
			return nil, fmt.Errorf("look for generations: %w", err)
		}
		for _, id := range list {
			out[id] = true
		}
	}
	return out, nil
}

// checkpointed returns the generations of a stream that checkpoints name.
func (x *pass) checkpointed(ctx context.Context, s *stream) ([]place, error) {
	out, err := sqlstore.List(ctx, x.reader, `SELECT DISTINCT e.name, c.generation FROM checkpoints c
JOIN artifact_epochs e ON e.owner = c.owner AND e.stream = c.stream AND e.rank = c.rank
WHERE c.owner = ? AND c.stream = ?`, []any{s.owner, s.id}, func(row sqlstore.Scanner) (p place, err error) {
		return p, row.Scan(&p.epoch, &p.generation)
	})
	return out, sqlstore.Wrap(err, "look for checkpoints")
}

// ofReplaced are rows of bytes that others replaced.
const ofReplaced = ` FROM superseded WHERE owner = ? AND stream = ? AND replaced >= ? AND replaced <= ?`

func (w *work) ofReplaced() []any { return []any{w.stream.owner, w.stream.id, w.stream.rest, w.before} }

func (p *Policy) countReplaced(ctx context.Context, d sqlstore.Dialect, w *work) (n server.RetentionCount, err error) {
	err = d.Query(ctx, `SELECT count(*), CAST(coalesce(sum(length(raw) + 1), 0) AS bigint)`+ofReplaced,
		w.ofReplaced(), func(row sqlstore.Scanner) error { return row.Scan(&n.Lines, &n.Bytes) })
	return n, sqlstore.Wrap(err, "count replaced lines")
}

// aboveSize returns what exceeds the size that a rule lets a user keep: what was superseded first.
func (x *pass) aboveSize(r *server.RetentionRule, all []*target) []*target {
	if r.Over == 0 {
		return all
	}
	total := int64(0)
	for _, t := range all {
		total += t.count.Bytes
	}
	since := func(t *target) int64 {
		first := sqlstore.Micros(time.Now())
		for _, w := range t.work {
			for _, p := range w.pieces {
				first = min(first, p.since)
			}
		}
		return first
	}
	slices.SortStableFunc(all, func(a, b *target) int { return cmp.Compare(since(a), since(b)) })
	for i, t := range all {
		if total <= r.Over {
			return all[:i]
		}
		total -= t.count.Bytes
	}
	return all
}

// movable counts the blocks of a piece whose data is in the database.
func (p *Policy) movable(ctx context.Context, s *stream, x *piece) error {
	err := p.reader.Query(ctx, `SELECT CAST(coalesce(sum(lines), 0) AS bigint), CAST(coalesce(sum(raw_bytes), 0) AS bigint)
FROM blocks`+ofPlace+` AND first < ? AND last >= ? AND raw_bytes > 0 AND object = ''`,
		x.at(s).args(x.span.To, x.span.From),
		func(row sqlstore.Scanner) error { return row.Scan(&x.lines, &x.bytes) })
	return sqlstore.Wrap(err, "measure blocks")
}

// measure counts what is stored of a piece.
func (p *Policy) measure(ctx context.Context, s *stream, x *piece) error {
	n, err := p.lines.Measure(ctx, p.reader, x.at(s), x.span)
	x.lines, x.bytes = n.Lines, n.Bytes
	return err
}
