package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/search"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// Lagging implements server.DerivationStore. When nothing lags it writes nothing, unless something was masked: once
// that is derived again, nothing may remain of what was there before.
func (s *Store) Lagging(ctx context.Context, n int) ([]server.Task, error) {
	now := time.Now()
	ids, err := lagging(ctx, s.read, now, n)
	if err == nil && len(ids) == 0 {
		err = s.Scrub(ctx, func(int64, int64) {})
	}
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	var out []server.Task
	err = s.withLazyWriter(ctx, func(c *sql.Conn) error {
		if ids, err = lagging(ctx, c, now, n); err != nil {
			return err
		}
		out, err = lease(ctx, c, ids, now)
		return err
	})
	return out, sqlstore.Wrap(err, "take what is to derive")
}

// lagging are the streams to hand out, the most urgent first. Of those to derive whole, what comes soon of the same
// owner is handed out together: it changes the same pages.
func lagging(ctx context.Context, db executor, now time.Time, n int) (ids []int64, err error) {
	for _, query := range []string{`
SELECT id FROM streams INDEXED BY streams_lagging_live WHERE version > derived AND derived > 0 AND leased < ?
ORDER BY leased LIMIT ?`, `
SELECT id FROM (SELECT id, place, min(place) OVER (PARTITION BY owner) AS first
  FROM (SELECT id, owner, row_number() OVER (ORDER BY derived DESC, last_received DESC) AS place
    FROM streams INDEXED BY streams_lagging_whole WHERE version > derived AND derived <= 0 AND leased < ?1
    ORDER BY derived DESC, last_received DESC LIMIT ?2 * 16))
ORDER BY first, place LIMIT ?2`} {
		some, err := sqlstore.List(ctx, dialect{db}, query, []any{sqlstore.Micros(now), n - len(ids)},
			func(row sqlstore.Scanner) (id int64, err error) { return id, row.Scan(&id) })
		if err != nil {
			return nil, fmt.Errorf("look for what is to derive: %w", err)
		}
		if ids = append(ids, some...); len(ids) == n {
			break
		}
	}
	return ids, nil
}

func lease(ctx context.Context, c *sql.Conn, ids []int64, now time.Time) ([]server.Task, error) {
	const these = ` IN (SELECT value FROM json_each(?))`
	list := jsonList(ids)
	_, err := c.ExecContext(ctx, `DELETE FROM folds WHERE (owner, stream) IN (
  SELECT owner, id FROM streams WHERE redo AND id`+these+`)`, list)
	if err != nil {
		return nil, err
	}
	_, err = c.ExecContext(ctx, `UPDATE streams SET leased = ?, redo = 0 WHERE id`+these,
		sqlstore.Micros(now.Add(sqlstore.LeaseFor)), list)
	if err != nil {
		return nil, err
	}
	return sqlstore.List(ctx, dialect{c}, `
SELECT `+sqlstore.TaskColumns+` FROM json_each(?) j JOIN streams s ON s.id = j.value
LEFT JOIN folds d ON d.owner = s.owner AND d.stream = s.id LEFT JOIN facts f ON f.owner = s.owner AND f.stream = s.id
ORDER BY j.key`, []any{list}, sqlstore.ScanTask)
}

// SaveDerived implements server.DerivationStore. It waits while lines are being stored, so that it does not delay them.
func (s *Store) SaveDerived(ctx context.Context, list ...*server.Derivation) error {
	texts, err := search.Prepare(list)
	if err != nil {
		return err
	}
	live := true
	for _, d := range list {
		live = live && d.Live && d.Done
	}
	if err := s.derived.wait(ctx, s.idle); err != nil {
		return fmt.Errorf("store what was derived: %w", err)
	}
	ctx = context.WithoutCancel(ctx)
	var began time.Time
	err = s.withLazyWriter(ctx, func(c *sql.Conn) error {
		began = time.Now()
		for _, d := range list {
			if err := saveDerived(ctx, c, d); err != nil {
				return err
			}
		}
		return s.Index.Save(ctx, dialect{c}, texts)
	})
	s.derived.took(time.Since(began), live)
	if err != nil {
		return fmt.Errorf("store what was derived: %w", err)
	}
	s.Index.ScheduleMerge(texts)
	return nil
}

// withLazyWriter is withWriter for data that can be derived again: it does not wait for the disk.
func (s *Store) withLazyWriter(ctx context.Context, fn func(*sql.Conn) error) error {
	select {
	case s.queue.Lead <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.queue.Lead }()
	ctx = context.WithoutCancel(ctx)
	// What undoes a statement that fails stays in memory: in such a transaction it is little, and triggers make every
	// answer a statement that could.
	err := s.set(ctx, `PRAGMA synchronous = NORMAL`, `PRAGMA temp_store = MEMORY`)
	if err == nil {
		err = s.exclusively(ctx, func() error { return fn(s.conn) })
	}
	// The next lines must not be acknowledged before they are on disk.
	return errors.Join(err, s.set(ctx, `PRAGMA synchronous = FULL`, `PRAGMA temp_store = DEFAULT`))
}

// set changes what holds for the writer. It goes on after an error.
func (s *Store) set(ctx context.Context, pragmas ...string) error {
	var errs []error
	for _, p := range pragmas {
		_, err := s.conn.ExecContext(ctx, p)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func saveDerived(ctx context.Context, c executor, d *server.Derivation) error {
	if err := checkStale(ctx, c, d); err != nil {
		return err
	}
	// Facts first: which of several answers counts goes by them.
	if err := sqlstore.SaveFacts(ctx, dialect{c}, d); err != nil {
		return fmt.Errorf("facts: %w", err)
	}
	if err := sqlstore.SaveAnswers(ctx, dialect{c}, d.Task.Owner, []*server.Derivation{d}); err != nil {
		return fmt.Errorf("answers: %w", err)
	}
	if err := sqlstore.SaveDrops(ctx, dialect{c}, d); err != nil {
		return fmt.Errorf("rewrites: %w", err)
	}
	if err := sqlstore.SaveMoments(ctx, dialect{c}, d); err != nil {
		return fmt.Errorf("moments: %w", err)
	}
	if err := sqlstore.SaveEdits(ctx, dialect{c}, d); err != nil {
		return fmt.Errorf("edits: %w", err)
	}
	if err := sqlstore.SaveFold(ctx, dialect{c}, d); err != nil {
		return fmt.Errorf("place: %w", err)
	}
	if _, err := sqlstore.SaveProgress(ctx, dialect{c}, d, time.Now()); err != nil {
		return fmt.Errorf("place: %w", err)
	}
	return nil
}

// checkStale refuses a derivation of anything but the stored lines.
func checkStale(ctx context.Context, c executor, d *server.Derivation) error {
	var redo bool
	var at server.Position
	err := c.QueryRowContext(ctx, `
SELECT s.redo OR s.masked <> ?, coalesce(f.epoch, 0), coalesce(f.generation, 0), coalesce(f.line, 0)
FROM streams s LEFT JOIN folds f ON f.owner = s.owner AND f.stream = s.id WHERE s.id = ?`,
		d.Task.Masked, d.Task.Stream).Scan(&redo, &at.Epoch, &at.Generation, &at.Line)
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

// Renew implements server.DerivationStore.
func (s *Store) Renew(ctx context.Context, format int64) error {
	err := s.withWriter(ctx, func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, `
UPDATE streams SET redo = true, derived = -1, leased = 0
WHERE (owner, id) IN (SELECT owner, stream FROM folds WHERE format < ?)`, format)
		return err
	})
	return sqlstore.Wrap(err, "derive all again")
}

// ResetDerived implements server.DerivationStore.
func (s *Store) ResetDerived(ctx context.Context) error {
	err := s.withWriter(ctx, func(c *sql.Conn) error {
		for _, query := range []string{
			// What can't be derived again stays. Triggers keep usage_sums: it follows answers.
			`DELETE FROM answers WHERE (owner, stream) NOT IN (SELECT owner, stream FROM retired)`,
			`DELETE FROM usage_sums WHERE NOT EXISTS (SELECT 1 FROM retired)`,
			`DELETE FROM usage_totals WHERE NOT EXISTS (SELECT 1 FROM retired)`,
			`DELETE FROM drops WHERE (owner, stream) NOT IN (SELECT owner, stream FROM retired)`,
			`DELETE FROM facts WHERE (owner, stream) NOT IN (SELECT owner, id FROM streams WHERE retired > 0)`,
			`DELETE FROM folds`,
			`DELETE FROM moments`,
			`DELETE FROM edits`,
			`UPDATE streams AS s SET derived = -1, leased = 0, redo = 1 WHERE ` + sqlstore.HasLines,
		} {
			if _, err := (dialect{c}).Exec(ctx, query); err != nil {
				return err
			}
		}
		return search.Reset(ctx, dialect{c})
	})
	return sqlstore.Wrap(err, "drop what is derived")
}
