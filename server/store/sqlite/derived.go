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
// owner is handed out together: it changes the same pages. A lease of a clock that was ahead holds nobody.
func lagging(ctx context.Context, db executor, now time.Time, n int) (ids []int64, err error) {
	for _, query := range []string{`
SELECT id FROM streams INDEXED BY streams_lagging_live WHERE version > derived AND derived > 0
  AND leased NOT BETWEEN ?1 AND ?3
ORDER BY leased LIMIT ?2`, `
SELECT id FROM (SELECT id, place, min(place) OVER (PARTITION BY owner) AS first
  FROM (SELECT id, owner, row_number() OVER (ORDER BY derived DESC, last_received DESC) AS place
    FROM streams INDEXED BY streams_lagging_whole WHERE version > derived AND derived <= 0
      AND leased NOT BETWEEN ?1 AND ?3
    ORDER BY derived DESC, last_received DESC LIMIT ?2 * 16))
ORDER BY first, place LIMIT ?2`} {
		some, err := sqlstore.Numbers(ctx, dialect{db}, query, sqlstore.Micros(now), n-len(ids),
			sqlstore.Micros(now.Add(sqlstore.LongestLease)))
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
		d := dialect{c}
		if err := sqlstore.CheckStale(ctx, d, list); err != nil {
			return err
		}
		err := sqlstore.SaveDerived(ctx, d, list, func(x *server.Derivation) error {
			_, err := sqlstore.SaveProgress(ctx, d, x, time.Now())
			return err
		})
		if err != nil {
			return err
		}
		return s.Index.Save(ctx, d, texts)
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
	return s.leading(ctx, func(ctx context.Context) error {
		// What undoes a statement that fails stays in memory: in such a transaction it is little, and triggers make every
		// answer a statement that could.
		err := s.set(ctx, `PRAGMA synchronous = NORMAL`, `PRAGMA temp_store = MEMORY`)
		if err == nil {
			err = s.exclusively(ctx, func() error { return fn(s.conn) })
		}
		// The next lines must not be acknowledged before they are on disk.
		return errors.Join(err, s.set(ctx, `PRAGMA synchronous = FULL`, `PRAGMA temp_store = DEFAULT`))
	})
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

// Renew implements server.DerivationStore.
func (s *Store) Renew(ctx context.Context, format int64) error {
	err := s.withWriter(ctx, func(c *sql.Conn) error { return sqlstore.Renew(ctx, dialect{c}, format) })
	return sqlstore.Wrap(err, "derive all again")
}

// ResetDerived implements server.DerivationStore.
func (s *Store) ResetDerived(ctx context.Context) error {
	err := s.withWriter(ctx, func(c *sql.Conn) error {
		if err := sqlstore.ResetDerived(ctx, dialect{c}); err != nil {
			return err
		}
		return search.Reset(ctx, dialect{c})
	})
	return sqlstore.Wrap(err, "drop what is derived")
}
