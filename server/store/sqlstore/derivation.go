package sqlstore

import (
	"context"
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

// SaveFacts stores the summary of a derivation, in its transaction.
func SaveFacts(ctx context.Context, l Dialect, d *server.Derivation) error {
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
		oneIf(f.Copy))
	return err
}

// SaveDrops stores what rewrites dropped, in the transaction of a derivation.
func SaveDrops(ctx context.Context, l Dialect, d *server.Derivation) error {
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

func oneIf(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// SaveFold stores how far a stream is derived, in the transaction of a derivation.
func SaveFold(ctx context.Context, l Dialect, d *server.Derivation) error {
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
	return joinModels(models)
}
