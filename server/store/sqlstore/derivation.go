package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ccship/ccship/server"
)

// LeaseFor is how long a task is reserved for the process that derives it.
const LeaseFor = 30 * time.Second

// Lag implements server.DerivationStore. Each half has an index of its own.
func (c *Finder) Lag(ctx context.Context) (int64, error) {
	n, err := Number(ctx, c.reader, `
SELECT (SELECT count(*) FROM streams WHERE version > derived AND derived > 0) +
  (SELECT count(*) FROM streams WHERE version > derived AND derived <= 0)`)
	return n, Wrap(err, "count what is to derive")
}

// TaskColumns are a task's, of stream s, how far it is derived, d, and its facts f, for ScanTask.
const TaskColumns = `s.id, s.session_id, s.owner, s.machine, s.version, s.derived, s.masked,
  coalesce(d.epoch, 0), coalesce(d.generation, 0), coalesce(d.line, 0)` + MoreColumns

// ScanTask scans a row of TaskColumns.
func ScanTask(row Scanner) (t server.Task, err error) {
	to := []any{&t.Stream, &t.SessionID, &t.Owner, &t.Machine, &t.Version, &t.Derived, &t.Masked,
		&t.Position.Epoch, &t.Position.Generation, &t.Position.Line}
	return t, scanWithFacts(row, to, &t.Summary)
}

// CheckStale refuses derivations of anything but the stored lines, in the transaction that stores them.
func CheckStale(ctx context.Context, d Dialect, list []*server.Derivation) error {
	if len(list) == 0 {
		return nil
	}
	var owners, streams []int64
	for _, x := range list {
		owners, streams = append(owners, x.Task.Owner), append(streams, x.Task.Stream)
	}
	of1, of2 := few(owners), few(streams)
	type progress struct {
		redo   bool
		masked int64
		at     server.Position
	}
	now := map[int64]progress{}
	err := d.Query(ctx, `
SELECT s.id, s.redo, s.masked, coalesce(f.epoch, 0), coalesce(f.generation, 0), coalesce(f.line, 0)
FROM streams s LEFT JOIN folds f ON f.owner = s.owner AND f.stream = s.id
WHERE s.owner IN (`+Marks(len(of1))+`) AND s.id IN (`+Marks(len(of2))+`)`, append(of1, of2...),
		func(row Scanner) error {
			var id int64
			var x progress
			err := row.Scan(&id, &x.redo, &x.masked, &x.at.Epoch, &x.at.Generation, &x.at.Line)
			now[id] = x
			return err
		})
	if err != nil {
		return err
	}
	for _, d := range list {
		x, ok := now[d.Task.Stream]
		if !ok {
			return GoneError(d)
		}
		if x.redo || x.masked != d.Task.Masked || x.at != d.Task.Position {
			return fmt.Errorf("stream %d: %w", d.Task.Stream, server.ErrStale)
		}
	}
	return nil
}

// GoneError is the server.ErrStale of a derivation whose stream was forgotten.
func GoneError(d *server.Derivation) error {
	return fmt.Errorf("stream %d is gone: %w", d.Task.Stream, server.ErrStale)
}

// SaveDerived stores derivations of different streams. It writes what others wait for last: the owners' answers, which
// go by the facts, and the streams' rows, each by progress.
func SaveDerived(ctx context.Context, l Dialect, list []*server.Derivation,
	progress func(*server.Derivation) error) error {
	// Two that lock streams and owners in one order can't wait for each other.
	list = slices.SortedFunc(slices.Values(list), func(a, b *server.Derivation) int {
		return cmp.Or(cmp.Compare(a.Task.Owner, b.Task.Owner), cmp.Compare(a.Task.Stream, b.Task.Stream))
	})
	for _, d := range list {
		for _, save := range []func(context.Context, Dialect, *server.Derivation) error{
			saveFacts, saveDrops, saveMoments, saveEdits, saveFold,
		} {
			if err := save(ctx, l, d); err != nil {
				return err
			}
		}
	}
	for rest := list; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Task.Owner == rest[0].Task.Owner {
			n++
		}
		if err := SaveAnswers(ctx, l, rest[0].Task.Owner, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	// Put locks several streams in this order.
	list = slices.SortedFunc(slices.Values(list), func(a, b *server.Derivation) int {
		return cmp.Or(strings.Compare(a.Task.SessionID, b.Task.SessionID), cmp.Compare(a.Task.Owner, b.Task.Owner),
			strings.Compare(a.Task.Machine, b.Task.Machine))
	})
	for _, d := range list {
		if err := progress(d); err != nil {
			return err
		}
	}
	return nil
}

// Renew has all be derived again that was derived in an earlier format.
func Renew(ctx context.Context, d Dialect, format int64) error {
	_, err := d.Exec(ctx, `
UPDATE streams SET redo = true, derived = -1, leased = 0
WHERE (owner, id) IN (SELECT owner, stream FROM folds WHERE format < ?)
  AND NOT (redo AND derived = -1 AND leased = 0)`, format)
	return err
}

// DerivedTables are those that ResetDerived empties. Triggers keep usage_sums: it follows answers.
func DerivedTables() []string {
	return []string{"answers", "usage_sums", "usage_totals", "drops", "facts", "folds", "moments", "edits"}
}

// Retired reports whether lines were retired: what was derived of them can't be derived again.
func Retired(ctx context.Context, d Dialect) (bool, error) {
	n, err := Number(ctx, d, `SELECT (SELECT count(*) FROM (SELECT 1 FROM retired LIMIT 1) r) +
  (SELECT count(*) FROM (SELECT 1 FROM streams WHERE retired > 0 LIMIT 1) s)`)
	return n > 0, err
}

// ResetDerived removes what is derived and can be derived again, but for the index, and has that done.
func ResetDerived(ctx context.Context, d Dialect) error {
	some, err := Retired(ctx, d)
	if err != nil {
		return err
	}
	stays := map[string]string{}
	if some {
		stays = map[string]string{
			"answers":    ` WHERE (owner, stream) NOT IN (SELECT owner, stream FROM retired)`,
			"usage_sums": ` WHERE 1 = 0`, "usage_totals": ` WHERE 1 = 0`,
			"drops": ` WHERE (owner, stream) NOT IN (SELECT owner, stream FROM retired)`,
			"facts": ` WHERE (owner, stream) NOT IN (SELECT owner, id FROM streams WHERE retired > 0)`,
		}
	}
	for _, table := range DerivedTables() {
		if _, err := d.Exec(ctx, `DELETE FROM `+table+stays[table]); err != nil {
			return err
		}
	}
	_, err = d.Exec(ctx, `UPDATE streams AS s SET derived = -1, leased = 0, redo = true WHERE `+HasLines)
	return err
}

// saveFacts stores the summary of a derivation, in its transaction.
func saveFacts(ctx context.Context, l Dialect, d *server.Derivation) error {
	f := &d.Summary
	title, prompt := CleanText(f.Title), CleanText(f.FirstPrompt)
	_, err := l.Exec(ctx, `
INSERT INTO facts (owner, stream, title, first_prompt, folded, model, models, branch, version, started, ended,
  prompts, messages, tools, errors, compactions, context, "window", compact_at, lines, origin, copy)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (owner, stream) DO UPDATE SET title = excluded.title, first_prompt = excluded.first_prompt,
  folded = excluded.folded, model = excluded.model, models = excluded.models, branch = excluded.branch,
  version = excluded.version, started = excluded.started, ended = excluded.ended, prompts = excluded.prompts,
  messages = excluded.messages, tools = excluded.tools, errors = excluded.errors, compactions = excluded.compactions,
  context = excluded.context, "window" = excluded."window", compact_at = excluded.compact_at, lines = excluded.lines,
  origin = excluded.origin, copy = excluded.copy`,
		d.Task.Owner, d.Task.Stream, title, prompt, FoldText(title)+"\n"+FoldText(prompt), CleanText(f.Model),
		StoredModels(f.Models), CleanText(f.Branch), CleanText(f.Version), Micros(f.Started), Micros(f.Ended), f.Prompts,
		f.Messages, f.Tools, f.Errors, f.Compactions, f.Context, f.Window, f.Limit, f.Lines, CleanKey(f.Origin),
		Flag(f.Copy))
	return err
}

// saveDrops stores what rewrites dropped, in the transaction of a derivation.
func saveDrops(ctx context.Context, l Dialect, d *server.Derivation) error {
	for _, r := range d.Drops {
		_, err := l.Exec(ctx, `
INSERT INTO drops (owner, stream, epoch, generation, first_line, last_line, lines) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (owner, stream, epoch, generation)
DO UPDATE SET first_line = excluded.first_line, last_line = excluded.last_line, lines = excluded.lines`,
			d.Task.Owner, d.Task.Stream, r.Epoch, r.Generation, r.First, r.Last, r.Lines)
		if err != nil {
			return err
		}
	}
	return nil
}

// saveFold stores how far a stream is derived, in the transaction of a derivation.
func saveFold(ctx context.Context, l Dialect, d *server.Derivation) error {
	state, kept := NotNil(d.State), `state = excluded.state, state_line = excluded.state_line`
	line := d.Position.Line
	if d.KeepState {
		state, line = []byte{}, 0
		kept = `state_line = CASE WHEN f.state_line < 0 THEN f.line ELSE f.state_line END`
	}
	_, err := l.Exec(ctx, `
INSERT INTO folds AS f (owner, stream, epoch, generation, line, format, state, state_line)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (owner, stream) DO UPDATE SET epoch = excluded.epoch, generation = excluded.generation,
  line = excluded.line, format = excluded.format, `+kept,
		d.Task.Owner, d.Task.Stream, d.Position.Epoch, d.Position.Generation, d.Position.Line, d.Format, state, line)
	return err
}

// SaveProgress writes the stream's row, which others wait for. It returns how many rows it changed: none when the
// stream is gone.
func SaveProgress(ctx context.Context, l Dialect, d *server.Derivation, now time.Time) (int64, error) {
	leased, derived := now.Add(LeaseFor), int64(-1)
	switch {
	case d.Done:
		leased, derived = now.Add(d.Rest), d.Task.Version
	case d.Released:
		leased = now
	}
	return l.Exec(ctx, `
UPDATE streams SET leased = ?, derived = CASE WHEN derived < ? THEN ? ELSE derived END, ended = ?
WHERE owner = ? AND id = ?`,
		Micros(leased), derived, derived, Micros(d.Summary.Ended), d.Task.Owner, d.Task.Stream)
}

// StoredModels returns names of models as they are stored.
func StoredModels(list []string) string {
	models := make([]string, 0, len(list))
	for _, m := range list {
		if m = foldSpace(CleanText(m)); m != "" {
			models = append(models, m)
		}
	}
	return join(models)
}

// changesRoom is how many changes wait for a listener; more are dropped for it.
const changesRoom = 256

// Changes announces stored changes to listeners in this process. The zero value is ready; safe for concurrent use.
type Changes struct {
	mu        sync.Mutex
	listeners map[chan server.Change]struct{} // sent to and closed with mu held
}

// Listen returns a channel that gets changes until ctx is done, which closes it.
func (c *Changes) Listen(ctx context.Context) <-chan server.Change {
	ch := make(chan server.Change, changesRoom)
	c.mu.Lock()
	if c.listeners == nil {
		c.listeners = map[chan server.Change]struct{}{}
	}
	c.listeners[ch] = struct{}{}
	c.mu.Unlock()
	context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.listeners, ch)
		close(ch)
	})
	return ch
}

// Tell never blocks.
func (c *Changes) Tell(change server.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ch := range c.listeners {
		select {
		case ch <- change:
		default:
		}
	}
}

// momentRows is how many moments one statement stores.
const momentRows = 50

// saveMoments stores the moments of a derivation, in its transaction.
func saveMoments(ctx context.Context, l Dialect, d *server.Derivation) error {
	if !d.Live {
		return nil
	}
	query, args := `DELETE FROM moments WHERE owner = ? AND stream = ? AND line >= ?`,
		[]any{d.Task.Owner, d.Task.Stream, d.LiveFrom}
	if !d.Done {
		query, args = query+` AND line < ?`, append(args, d.Position.Line)
	}
	if _, err := l.Exec(ctx, query, args...); err != nil {
		return err
	}
	var there []server.Moment
	for _, m := range d.Moments {
		if m.Kind != "" {
			there = append(there, m)
			continue
		}
		_, err := l.Exec(ctx, `DELETE FROM moments WHERE owner = ? AND stream = ? AND line = ? AND part = ?`,
			d.Task.Owner, d.Task.Stream, m.Line, m.Part)
		if err != nil {
			return err
		}
	}
	for some := range slices.Chunk(there, momentRows) {
		args := make([]any, 0, 6*len(some))
		for _, m := range some {
			args = append(args, d.Task.Owner, d.Task.Stream, m.Line, m.Part, m.Kind, NotNil(m.Data))
		}
		_, err := l.Exec(ctx, `INSERT INTO moments (owner, stream, line, part, kind, data) VALUES `+
			strings.TrimSuffix(strings.Repeat(`(?, ?, ?, ?, ?, ?), `, len(some)), ", ")+`
ON CONFLICT (owner, stream, line, part) DO UPDATE SET kind = excluded.kind, data = excluded.data`, args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// Moments implements server.Moments.
func (c *Finder) Moments(ctx context.Context, q server.MomentQuery) ([]server.Moment, error) {
	var f Filter
	f.Add(`owner = ? AND stream = ?`, q.Owner, q.Stream)
	f.Add(`line >= ?`, q.From)
	if q.To > 0 {
		f.Add(`line < ?`, q.To)
	}
	if q.After != nil {
		f.Add(`(line > ? OR line = ? AND part > ?)`, q.After.Line, q.After.Line, q.After.Part)
	}
	if len(q.Kinds) > 0 {
		f.Add(`kind IN (`+Marks(len(q.Kinds))+`)`, Values(q.Kinds)...)
	}
	order := `line, part`
	if q.Backwards {
		order = `line DESC, part DESC`
	}
	out, err := List(ctx, c.reader, `SELECT line, part, kind, data FROM moments `+f.Where()+` ORDER BY `+order+` LIMIT ?`,
		append(f.Args, q.Limit), func(row Scanner) (m server.Moment, err error) {
			return m, row.Scan(&m.Line, &m.Part, &m.Kind, &m.Data)
		})
	return out, Wrap(err, "list moments")
}
