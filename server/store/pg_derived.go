package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server"
)

// Classes of advisory locks: one deriver at a time for a stream, and for an owner's answers; one server
// at a time that changes the schema.
const (
	lockSchema = 0x6363_0000
	lockStream = 0x6363_0001
	lockOwner  = 0x6363_0002
)

// Lag implements server.DerivationStore.
func (s *Postgres) Lag(ctx context.Context) (n int64, err error) {
	if err := s.pool.QueryRow(ctx, `SELECT count(*) FROM streams WHERE version > derived`).Scan(&n); err != nil {
		return 0, fmt.Errorf("count what is to derive: %w", err)
	}
	return n, nil
}

// Lagging implements server.DerivationStore. It skips streams that are being written and those that another server
// derives. When no stream lags, it writes nothing.
func (s *Postgres) Lagging(ctx context.Context, n int) ([]server.Task, error) {
	now := time.Now()
	var some bool
	err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM streams WHERE version > derived AND leased < $1)`,
		micros(now)).Scan(&some)
	if err != nil {
		return nil, fmt.Errorf("look for what is to derive: %w", err)
	}
	if !some {
		return nil, nil
	}
	var out []server.Task
	err = s.withLazyTx(ctx, func(tx pgx.Tx) error {
		out, err = leasePg(ctx, tx, now, n)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("take what is to derive: %w", err)
	}
	return out, nil
}

func leasePg(ctx context.Context, tx pgx.Tx, now time.Time, n int) ([]server.Task, error) {
	rows, err := tx.Query(ctx, `
WITH chosen AS (
  SELECT id, redo FROM streams WHERE version > derived AND leased < $1
  ORDER BY last_received DESC LIMIT $2 FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM folds WHERE stream IN (SELECT id FROM chosen WHERE redo)
), taken AS (
  UPDATE streams s SET leased = $3, redo = false FROM chosen c WHERE c.id = s.id
  RETURNING s.id, s.session_id, s.owner, s.machine, s.version, s.last_received, c.redo
)
SELECT t.id, t.session_id, t.owner, t.machine, t.version,
  coalesce(f.epoch, 0), coalesce(f.generation, 0), coalesce(f.line, 0), coalesce(f.state, '')
FROM taken t LEFT JOIN folds f ON f.stream = t.id AND NOT t.redo ORDER BY t.last_received DESC`,
		micros(now), n, micros(now.Add(leaseFor)))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t server.Task, err error) {
		err = row.Scan(&t.Stream, &t.SessionID, &t.Owner, &t.Machine, &t.Version,
			&t.Position.Epoch, &t.Position.Generation, &t.Position.Line, &t.State)
		return t, err
	})
}

// withLazyTx is withTx for what can be made again: it does not wait for the disk, nor for a standby.
func (s *Postgres) withLazyTx(ctx context.Context, fn func(pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, pgPatience)
	defer cancel()
	return s.withTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL synchronous_commit = off`); err != nil {
			return err
		}
		return fn(tx)
	})
}

// SaveDerived implements server.DerivationStore.
func (s *Postgres) SaveDerived(ctx context.Context, d *server.Derivation) error {
	texts := prepareTexts(d)
	committed := false
	err := s.withLazyTx(ctx, func(tx pgx.Tx) error {
		err := saveDerivedPg(ctx, tx, d, texts)
		if committed && errors.Is(err, server.ErrStale) {
			return nil // by the try before, whose answer was lost
		}
		committed = err == nil
		return err
	})
	if err != nil {
		return fmt.Errorf("store what was derived: %w", err)
	}
	return nil
}

// saveDerivedPg writes what others wait for last: the stream's row, and the owner's answers.
func saveDerivedPg(ctx context.Context, tx pgx.Tx, d *server.Derivation, texts []preparedText) error {
	if err := checkStalePg(ctx, tx, d); err != nil {
		return err
	}
	if err := replaceTextsPg(ctx, tx, d, texts); err != nil {
		return fmt.Errorf("texts: %w", err)
	}
	batch := &pgx.Batch{}
	for _, r := range d.Drops {
		batch.Queue(`
INSERT INTO drops (stream, epoch, generation, first_line, last_line, lines) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (stream, epoch, generation)
DO UPDATE SET first_line = excluded.first_line, last_line = excluded.last_line, lines = excluded.lines`,
			d.Task.Stream, r.Epoch, r.Generation, r.First, r.Last, r.Lines)
	}
	queueFacts(batch, d)
	batch.Queue(`
INSERT INTO folds (stream, epoch, generation, line, format, state) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (stream) DO UPDATE SET epoch = excluded.epoch, generation = excluded.generation, line = excluded.line,
  format = excluded.format, state = excluded.state`,
		d.Task.Stream, d.Position.Epoch, d.Position.Generation, d.Position.Line, d.Format, notNil(d.State))
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	if err := saveAnswersPg(ctx, tx, d); err != nil {
		return fmt.Errorf("answers: %w", err)
	}
	leased, derived := micros(time.Now().Add(leaseFor)), int64(-1)
	if d.Done {
		leased, derived = 0, d.Task.Version
	}
	tag, err := tx.Exec(ctx, `UPDATE streams SET leased = $1, derived = greatest(derived, $2), ended = $4 WHERE id = $3`,
		leased, derived, d.Task.Stream, micros(d.Summary.Ended))
	if err == nil && tag.RowsAffected() == 0 {
		return goneError(d)
	}
	return err
}

func goneError(d *server.Derivation) error {
	return fmt.Errorf("stream %d is gone: %w", d.Task.Stream, server.ErrStale)
}

// checkStalePg refuses what was derived from something else than what is stored, and keeps others from deriving the
// stream until the transaction ends.
func checkStalePg(ctx context.Context, tx pgx.Tx, d *server.Derivation) error {
	if err := lockTx(ctx, tx, lockStream, d.Task.Stream); err != nil {
		return err
	}
	var redo bool
	var at server.Position
	err := tx.QueryRow(ctx, `
SELECT s.redo, coalesce(f.epoch, 0), coalesce(f.generation, 0), coalesce(f.line, 0)
FROM streams s LEFT JOIN folds f ON f.stream = s.id WHERE s.id = $1`, d.Task.Stream).
		Scan(&redo, &at.Epoch, &at.Generation, &at.Line)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return goneError(d)
	case err != nil:
		return err
	case redo || at != d.Task.Position:
		return fmt.Errorf("stream %d: %w", d.Task.Stream, server.ErrStale)
	}
	return nil
}

// lockTx takes an advisory lock until the transaction ends.
func lockTx(ctx context.Context, tx pgx.Tx, class int32, id int64) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1, $2)`, class, int32(id)) // a shared lock of two costs little
	return err
}

func queueFacts(batch *pgx.Batch, d *server.Derivation) {
	f := &d.Summary
	title, prompt := cleanText(f.Title), cleanText(f.FirstPrompt)
	batch.Queue(`DELETE FROM facts WHERE stream = $1`, d.Task.Stream)
	batch.Queue(`
INSERT INTO facts (stream, title, first_prompt, folded, model, models, branch, version, started, ended, prompts,
  messages, tools, errors, compactions, context, "window", compact_at, lines)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`,
		d.Task.Stream, title, prompt, foldText(title)+"\n"+foldText(prompt), cleanText(f.Model), storedModels(f.Models),
		cleanText(f.Branch), cleanText(f.Version), micros(f.Started), micros(f.Ended), f.Prompts, f.Messages, f.Tools,
		f.Errors, f.Compactions, f.Context, f.Window, f.Limit, f.Lines)
}

// Renew implements server.DerivationStore.
func (s *Postgres) Renew(ctx context.Context, format int64) error {
	err := s.withTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
UPDATE streams SET redo = true, derived = 0, leased = 0
WHERE id IN (SELECT stream FROM folds WHERE format < $1) AND NOT (redo AND derived = 0 AND leased = 0)`, format)
		return err
	})
	if err != nil {
		return fmt.Errorf("derive all again: %w", err)
	}
	return nil
}

// ResetDerived implements server.DerivationStore.
func (s *Postgres) ResetDerived(ctx context.Context) error {
	err := s.withTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `TRUNCATE texts, answers, drops, facts, folds`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE streams AS s SET derived = 0, leased = 0, redo = true WHERE `+hasLines)
		return err
	})
	if err != nil {
		return fmt.Errorf("drop what is derived: %w", err)
	}
	return nil
}
