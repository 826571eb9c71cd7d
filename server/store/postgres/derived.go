package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/search"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// waits says that a stream is not leased. A lease of a clock that was ahead holds nobody.
const waits = `leased NOT BETWEEN $1 AND $2`

// Lagging implements server.DerivationStore. It skips streams that are being written and those that another server
// derives. When no stream lags, it writes nothing.
func (s *Store) Lagging(ctx context.Context, n int) ([]server.Task, error) {
	now := time.Now()
	var some bool
	err := s.pool.QueryRow(ctx, `
SELECT EXISTS (SELECT FROM streams WHERE version > derived AND derived > 0 AND `+waits+`)
  OR EXISTS (SELECT FROM streams WHERE version > derived AND derived <= 0 AND `+waits+`)`,
		sqlstore.Micros(now), sqlstore.Micros(now.Add(sqlstore.LongestLease))).Scan(&some)
	if err != nil {
		return nil, fmt.Errorf("look for what is to derive: %w", err)
	}
	if !some {
		return nil, s.Index.Purge(ctx)
	}
	var out []server.Task
	err = s.writeAs(ctx, sqlstore.Lazy, func(tx pgx.Tx) error {
		out, err = lease(ctx, tx, now, n)
		return err
	})
	return out, sqlstore.Wrap(err, "take what is to derive")
}

func lease(ctx context.Context, tx pgx.Tx, now time.Time, n int) ([]server.Task, error) {
	rows, err := tx.Query(ctx, `
WITH live AS (
  SELECT owner, id, redo, leased FROM streams WHERE version > derived AND derived > 0 AND `+waits+`
  ORDER BY leased LIMIT $3 FOR UPDATE SKIP LOCKED
), whole AS (
  SELECT owner, id, redo, leased FROM streams WHERE version > derived AND derived <= 0 AND `+waits+`
  ORDER BY derived DESC, last_received DESC LIMIT $3 - (SELECT count(*) FROM live) FOR UPDATE SKIP LOCKED
), chosen AS (
  SELECT * FROM live UNION ALL SELECT * FROM whole
), gone AS (
  DELETE FROM folds WHERE (owner, stream) IN (SELECT owner, id FROM chosen WHERE redo)
), s AS (
  UPDATE streams x SET leased = $4, redo = false FROM chosen c WHERE x.owner = c.owner AND x.id = c.id
  RETURNING x.id, x.session_id, x.owner, x.machine, x.version, x.masked, x.last_received, x.derived,
    c.leased AS waits, c.redo
)
SELECT `+sqlstore.TaskColumns+`
FROM s LEFT JOIN folds d ON d.owner = s.owner AND d.stream = s.id AND NOT s.redo
LEFT JOIN facts f ON f.owner = s.owner AND f.stream = s.id
ORDER BY s.derived > 0 DESC, CASE WHEN s.derived > 0 THEN s.waits END, s.derived DESC, s.last_received DESC`,
		sqlstore.Micros(now), sqlstore.Micros(now.Add(sqlstore.LongestLease)), n,
		sqlstore.Micros(now.Add(sqlstore.LeaseFor)))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (server.Task, error) { return sqlstore.ScanTask(row) })
}

// SaveDerived implements server.DerivationStore.
func (s *Store) SaveDerived(ctx context.Context, list ...*server.Derivation) error {
	texts, err := search.Prepare(list)
	if err != nil {
		return err
	}
	committed := false
	err = s.writeAs(ctx, sqlstore.Lazy, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, byKey)
		if err == nil {
			err = saveDerived(ctx, tx, list)
		}
		if err == nil {
			err = s.Index.Save(ctx, dialect{tx}, texts)
		}
		if committed && errors.Is(err, server.ErrStale) {
			return nil // by the try before, whose answer was lost
		}
		committed = err == nil
		return err
	})
	if err != nil {
		return fmt.Errorf("store what was derived: %w", err)
	}
	s.Index.ScheduleMerge(texts)
	return nil
}

// saveDerived keeps others from deriving the streams until the transaction ends. It sends at once what does not depend
// on an answer of the database.
func saveDerived(ctx context.Context, tx pgx.Tx, list []*server.Derivation) error {
	keys := make([]int32, len(list))
	for i, d := range list {
		keys[i] = int32(d.Task.Stream) // a shared lock of two costs little
	}
	slices.Sort(keys)
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1, k) FROM unnest($2::int[]) k`,
		int32(sqlstore.HeldStream), keys)
	if err != nil {
		return err
	}
	if err := sqlstore.CheckStale(ctx, dialect{tx}, list); err != nil {
		return err
	}
	q := queueing{dialect: dialect{tx}, batch: &pgx.Batch{}}
	err = sqlstore.SaveDerived(ctx, q, list, func(d *server.Derivation) error {
		q := q
		q.none = sqlstore.GoneError(d)
		_, err := sqlstore.SaveProgress(ctx, q, d, time.Now())
		return err
	})
	if err != nil {
		return err
	}
	return tx.SendBatch(ctx, q.batch).Close()
}

// queueing is a dialect whose statements wait in a batch. It does not know how many rows they change.
type queueing struct {
	dialect
	batch *pgx.Batch
	none  error // of a statement that changes no row; nil: it may
}

// Exec implements sqlstore.Dialect.
func (q queueing) Exec(_ context.Context, query string, args ...any) (int64, error) {
	query, args = numbered(query, args)
	q.batch.Queue(query, args...).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() == 0 {
			return q.none
		}
		return nil
	})
	return 0, nil
}

// Hold implements sqlstore.Dialect.
func (q queueing) Hold(_ context.Context, what sqlstore.Held, id int64) error {
	q.batch.Queue(`SELECT pg_advisory_xact_lock($1, $2)`, int32(what), int32(id))
	return nil
}

// Renew implements server.DerivationStore.
func (s *Store) Renew(ctx context.Context, format int64) error {
	err := s.inBackground(ctx, func(tx pgx.Tx) error { return sqlstore.Renew(ctx, dialect{tx}, format) })
	return sqlstore.Wrap(err, "derive all again")
}

// ResetDerived implements server.DerivationStore. Tables are truncated, unless the role may only delete their rows, or
// some have to stay.
func (s *Store) ResetDerived(ctx context.Context) error {
	err := s.inBackground(ctx, func(tx pgx.Tx) error {
		tables := append(sqlstore.DerivedTables(), "gram_segments", "gram_pages", "gram_purges")
		may := false
		some, err := sqlstore.Retired(ctx, dialect{tx})
		if err == nil {
			err = tx.QueryRow(ctx, `SELECT bool_and(has_table_privilege(t, 'TRUNCATE')) FROM unnest($1::text[]) t`,
				tables).Scan(&may)
		}
		if err == nil && may && !some {
			_, err = tx.Exec(ctx, `TRUNCATE `+strings.Join(tables, ", "))
		}
		if err != nil {
			return err
		}
		if err := sqlstore.ResetDerived(ctx, dialect{tx}); err != nil {
			return err
		}
		return search.Reset(ctx, dialect{tx})
	})
	return sqlstore.Wrap(err, "drop what is derived")
}
