package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
)

// leaseFor is how long a task is reserved for the process that derives it.
const leaseFor = 30 * time.Second

// Lag implements server.DerivationStore.
func (s *SQLite) Lag(ctx context.Context) (n int64, err error) {
	if err := s.read.QueryRowContext(ctx, `SELECT count(*) FROM streams WHERE version > derived`).Scan(&n); err != nil {
		return 0, fmt.Errorf("count what is to derive: %w", err)
	}
	return n, nil
}

// Lagging implements server.DerivationStore. When nothing lags it writes nothing.
func (s *SQLite) Lagging(ctx context.Context, n int) ([]server.Task, error) {
	now := time.Now()
	ids, err := lagging(ctx, s.read, now, n)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	var out []server.Task
	err = s.withLazyWriter(ctx, func(c *sql.Conn) error {
		if ids, err = lagging(ctx, c, now, n); err != nil {
			return err
		}
		for _, id := range ids {
			t, err := lease(ctx, c, id, now)
			if err != nil {
				return err
			}
			out = append(out, t)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("take what is to derive: %w", err)
	}
	return out, nil
}

func lagging(ctx context.Context, db executor, now time.Time, n int) ([]int64, error) {
	ids, err := list(ctx, sqliteDialect{db}, `
SELECT id FROM streams INDEXED BY streams_lagging WHERE version > derived AND leased < ?
ORDER BY last_received DESC LIMIT ?`, []any{micros(now), n}, func(row scanner) (id int64, err error) {
		return id, row.Scan(&id)
	})
	if err != nil {
		return nil, fmt.Errorf("look for what is to derive: %w", err)
	}
	return ids, nil
}

func lease(ctx context.Context, c *sql.Conn, stream int64, now time.Time) (t server.Task, err error) {
	var redo bool
	err = c.QueryRowContext(ctx, `
SELECT s.id, s.session_id, s.owner, s.machine, s.version, s.redo,
  coalesce(f.epoch, 0), coalesce(f.generation, 0), coalesce(f.line, 0), coalesce(f.state, x'')
FROM streams s LEFT JOIN folds f ON f.stream = s.id WHERE s.id = ?`, stream).Scan(&t.Stream, &t.SessionID, &t.Owner,
		&t.Machine, &t.Version, &redo, &t.Position.Epoch, &t.Position.Generation, &t.Position.Line, &t.State)
	if err != nil {
		return t, err
	}
	if redo {
		t.Position, t.State = server.Position{}, nil
		if _, err := c.ExecContext(ctx, `DELETE FROM folds WHERE stream = ?`, stream); err != nil {
			return t, err
		}
	}
	_, err = c.ExecContext(ctx, `UPDATE streams SET leased = ?, redo = 0 WHERE id = ?`, micros(now.Add(leaseFor)), stream)
	return t, err
}

// SaveDerived implements server.DerivationStore. It waits while lines are being stored, so that it does not delay them.
func (s *SQLite) SaveDerived(ctx context.Context, d *server.Derivation) error {
	texts := prepareTexts(d)
	if err := s.derived.wait(ctx, s.idle); err != nil {
		return fmt.Errorf("store what was derived: %w", err)
	}
	var began time.Time
	err := s.withLazyWriter(ctx, func(c *sql.Conn) error {
		began = time.Now()
		return saveDerived(ctx, c, d, texts)
	})
	s.derived.took(time.Since(began))
	if err != nil {
		return fmt.Errorf("store what was derived: %w", err)
	}
	return nil
}

// withLazyWriter is withWriter for data that can be derived again: it does not wait for the disk.
func (s *SQLite) withLazyWriter(ctx context.Context, fn func(*sql.Conn) error) error {
	select {
	case s.lead <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.lead }()
	ctx = context.WithoutCancel(ctx)
	if _, err := s.conn.ExecContext(ctx, `PRAGMA synchronous = NORMAL`); err != nil {
		return err
	}
	err := s.exclusively(ctx, func() error { return fn(s.conn) })
	// The next lines must not be acknowledged before they are on disk.
	_, back := s.conn.ExecContext(ctx, `PRAGMA synchronous = FULL`)
	return errors.Join(err, back)
}

func saveDerived(ctx context.Context, c *sql.Conn, d *server.Derivation, texts []preparedText) error {
	if err := checkStale(ctx, c, d); err != nil {
		return err
	}
	if err := saveAnswers(ctx, c, d); err != nil {
		return fmt.Errorf("answers: %w", err)
	}
	for _, r := range d.Drops {
		_, err := c.ExecContext(ctx, `
INSERT INTO drops (epoch, generation, first_line, last_line, lines) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET first_line = excluded.first_line, last_line = excluded.last_line, lines = excluded.lines`,
			r.Epoch, r.Generation, r.First, r.Last, r.Lines)
		if err != nil {
			return fmt.Errorf("rewrites: %w", err)
		}
	}
	if err := saveFacts(ctx, c, d); err != nil {
		return fmt.Errorf("facts: %w", err)
	}
	if err := saveFold(ctx, c, d); err != nil {
		return fmt.Errorf("place: %w", err)
	}
	// This comes last: undoing a later statement would make the index write what it has.
	if err := replaceTexts(ctx, c, d, texts); err != nil {
		return fmt.Errorf("texts: %w", err)
	}
	return nil
}

// saveFold stores how far a stream is derived.
func saveFold(ctx context.Context, c *sql.Conn, d *server.Derivation) error {
	state := d.State
	if state == nil {
		state = []byte{}
	}
	_, err := c.ExecContext(ctx, `
INSERT INTO folds (stream, epoch, generation, line, format, state) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET epoch = excluded.epoch, generation = excluded.generation, line = excluded.line,
  format = excluded.format, state = excluded.state`,
		d.Task.Stream, d.Position.Epoch, d.Position.Generation, d.Position.Line, d.Format, state)
	if err != nil {
		return err
	}
	leased, derived := micros(time.Now().Add(leaseFor)), int64(-1)
	if d.Done {
		leased, derived = 0, d.Task.Version
	}
	_, err = c.ExecContext(ctx, `UPDATE streams SET leased = ?, derived = max(derived, ?), ended = ? WHERE id = ?`,
		leased, derived, micros(d.Summary.Ended), d.Task.Stream)
	return err
}

// checkStale refuses a derivation of anything but the stored lines.
func checkStale(ctx context.Context, c *sql.Conn, d *server.Derivation) error {
	var redo bool
	var at server.Position
	err := c.QueryRowContext(ctx, `
SELECT s.redo, coalesce(f.epoch, 0), coalesce(f.generation, 0), coalesce(f.line, 0)
FROM streams s LEFT JOIN folds f ON f.stream = s.id WHERE s.id = ?`, d.Task.Stream).
		Scan(&redo, &at.Epoch, &at.Generation, &at.Line)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("stream %d is gone: %w", d.Task.Stream, server.ErrStale)
	case err != nil:
		return err
	case redo || at != d.Task.Position:
		return fmt.Errorf("stream %d: %w", d.Task.Stream, server.ErrStale)
	}
	return nil
}

// storedModels are names of models as they are stored.
func storedModels(list []string) string {
	models := make([]string, 0, len(list))
	for _, m := range list {
		if m = foldSpace(cleanText(m)); m != "" {
			models = append(models, m)
		}
	}
	return joinModels(models)
}

func saveFacts(ctx context.Context, c *sql.Conn, d *server.Derivation) error {
	f := &d.Summary
	title, prompt := cleanText(f.Title), cleanText(f.FirstPrompt)
	_, err := c.ExecContext(ctx, `
INSERT OR REPLACE INTO facts (stream, title, first_prompt, folded, model, models, branch, version, started, ended,
  prompts, messages, tools, errors, compactions, context, window, compact_at, lines)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		d.Task.Stream, title, prompt, foldText(title)+"\n"+foldText(prompt), cleanText(f.Model), storedModels(f.Models),
		cleanText(f.Branch), cleanText(f.Version), micros(f.Started), micros(f.Ended), f.Prompts, f.Messages, f.Tools,
		f.Errors, f.Compactions, f.Context, f.Window, f.Limit, f.Lines)
	return err
}

// Renew implements server.DerivationStore.
func (s *SQLite) Renew(ctx context.Context, format int64) error {
	err := s.withWriter(ctx, func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, `
UPDATE streams SET redo = 1, derived = 0, leased = 0 WHERE id IN (SELECT stream FROM folds WHERE format < ?)`, format)
		return err
	})
	if err != nil {
		return fmt.Errorf("derive all again: %w", err)
	}
	return nil
}

// ResetDerived implements server.DerivationStore.
func (s *SQLite) ResetDerived(ctx context.Context) error {
	err := s.withWriter(ctx, func(c *sql.Conn) error {
		for _, query := range []string{
			`INSERT INTO texts_index (texts_index) VALUES ('delete-all')`,
			`DELETE FROM texts`, `DELETE FROM answers`, `DELETE FROM drops`, `DELETE FROM facts`, `DELETE FROM folds`,
			`UPDATE streams AS s SET derived = 0, leased = 0, redo = 1 WHERE ` + hasLines,
		} {
			if _, err := c.ExecContext(ctx, query); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("drop what is derived: %w", err)
	}
	return nil
}
