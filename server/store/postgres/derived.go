package postgres

import (
	"cmp"
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

// Lagging implements server.DerivationStore. It skips streams that are being written and those that another server
// derives. When no stream lags, it writes nothing.
func (s *Store) Lagging(ctx context.Context, n int) ([]server.Task, error) {
	now := time.Now()
	var some bool
	err := s.pool.QueryRow(ctx, `
SELECT EXISTS (SELECT FROM streams WHERE version > derived AND derived > 0 AND leased < $1)
  OR EXISTS (SELECT FROM streams WHERE version > derived AND derived <= 0 AND leased < $1)`,
		sqlstore.Micros(now)).Scan(&some)
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
  SELECT owner, id, redo, leased FROM streams WHERE version > derived AND derived > 0 AND leased < $1
  ORDER BY leased LIMIT $2 FOR UPDATE SKIP LOCKED
), whole AS (
  SELECT owner, id, redo, leased FROM streams WHERE version > derived AND derived <= 0 AND leased < $1
  ORDER BY derived DESC, last_received DESC LIMIT $2 - (SELECT count(*) FROM live) FOR UPDATE SKIP LOCKED
), chosen AS (
  SELECT * FROM live UNION ALL SELECT * FROM whole
), gone AS (
  DELETE FROM folds WHERE (owner, stream) IN (SELECT owner, id FROM chosen WHERE redo)
), s AS (
  UPDATE streams x SET leased = $3, redo = false FROM chosen c WHERE x.owner = c.owner AND x.id = c.id
  RETURNING x.id, x.session_id, x.owner, x.machine, x.version, x.masked, x.last_received, x.derived,
    c.leased AS waits, c.redo
)
SELECT `+sqlstore.TaskColumns+`
FROM s LEFT JOIN folds d ON d.owner = s.owner AND d.stream = s.id AND NOT s.redo
LEFT JOIN facts f ON f.owner = s.owner AND f.stream = s.id
ORDER BY s.derived > 0 DESC, CASE WHEN s.derived > 0 THEN s.waits END, s.derived DESC, s.last_received DESC`,
		sqlstore.Micros(now), n, sqlstore.Micros(now.Add(sqlstore.LeaseFor)))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (server.Task, error) { return sqlstore.ScanTask(row) })
}

// SaveDerived implements server.DerivationStore.
func (s *Store) SaveDerived(ctx context.Context, list ...*server.Derivation) error {
	// Two that lock streams and owners in one order can't wait for each other.
	list = slices.SortedFunc(slices.Values(list), func(a, b *server.Derivation) int {
		return cmp.Or(cmp.Compare(a.Task.Owner, b.Task.Owner), cmp.Compare(a.Task.Stream, b.Task.Stream))
	})
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

// saveDerived writes what others wait for last: the owners' answers, and the streams' rows. What does not depend on an
// answer of the database is sent at once.
func saveDerived(ctx context.Context, tx pgx.Tx, list []*server.Derivation) error {
	if err := checkStale(ctx, tx, list); err != nil {
		return err
	}
	q := queueing{dialect: dialect{tx}, batch: &pgx.Batch{}}
	for _, d := range list {
		err := cmp.Or(sqlstore.SaveDrops(ctx, q, d), sqlstore.SaveMoments(ctx, q, d), sqlstore.SaveEdits(ctx, q, d),
			sqlstore.SaveFacts(ctx, q, d), sqlstore.SaveFold(ctx, q, d))
		if err != nil {
			return err
		}
	}
	for rest := list; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Task.Owner == rest[0].Task.Owner {
			n++
		}
		if err := sqlstore.SaveAnswers(ctx, q, rest[0].Task.Owner, rest[:n]); err != nil {
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
		q.none = goneError(d)
		if _, err := sqlstore.SaveProgress(ctx, q, d, time.Now()); err != nil {
			return err
		}
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

func goneError(d *server.Derivation) error {
	return fmt.Errorf("stream %d is gone: %w", d.Task.Stream, server.ErrStale)
}

// checkStale refuses what was derived from something else than what is stored, and keeps others from deriving the
// streams until the transaction ends.
func checkStale(ctx context.Context, tx pgx.Tx, list []*server.Derivation) error {
	owners, ids, keys := make([]int64, len(list)), make([]int64, len(list)), make([]int32, len(list))
	for i, d := range list {
		owners[i], ids[i], keys[i] = d.Task.Owner, d.Task.Stream, int32(d.Task.Stream) // a shared lock of two costs little
	}
	slices.Sort(keys)
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1, k) FROM unnest($2::int[]) k`,
		int32(sqlstore.HeldStream), keys)
	if err != nil {
		return err
	}
	type stand struct {
		redo   bool
		masked int64
		at     server.Position
	}
	now := map[int64]stand{}
	err = dialect{tx}.Query(ctx, `
SELECT s.id, s.redo, s.masked, coalesce(f.epoch, 0), coalesce(f.generation, 0), coalesce(f.line, 0)
FROM unnest(?::bigint[], ?::bigint[]) x (owner, stream) JOIN streams s ON s.owner = x.owner AND s.id = x.stream
LEFT JOIN folds f ON f.owner = s.owner AND f.stream = s.id`, []any{owners, ids}, func(row sqlstore.Scanner) error {
		var id int64
		var x stand
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
			return goneError(d)
		}
		if x.redo || x.masked != d.Task.Masked || x.at != d.Task.Position {
			return fmt.Errorf("stream %d: %w", d.Task.Stream, server.ErrStale)
		}
	}
	return nil
}

// Renew implements server.DerivationStore.
func (s *Store) Renew(ctx context.Context, format int64) error {
	err := s.inBackground(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
UPDATE streams SET redo = true, derived = -1, leased = 0
WHERE (owner, id) IN (SELECT owner, stream FROM folds WHERE format < $1)
  AND NOT (redo AND derived = -1 AND leased = 0)`, format)
		return err
	})
	return sqlstore.Wrap(err, "derive all again")
}

// ResetDerived implements server.DerivationStore.
func (s *Store) ResetDerived(ctx context.Context) error {
	err := s.inBackground(ctx, func(tx pgx.Tx) error {
		if err := emptyDerived(ctx, tx); err != nil {
			return err
		}
		_, err := dialect{tx}.Exec(ctx, `
UPDATE streams AS s SET derived = -1, leased = 0, redo = true WHERE `+sqlstore.HasLines)
		return err
	})
	return sqlstore.Wrap(err, "drop what is derived")
}

// derivedTables are those that ResetDerived empties. Triggers keep usage_sums: it follows answers.
var derivedTables = []string{"gram_segments", "gram_pages", "gram_purges", "answers", "usage_sums",
	"usage_totals", "drops", "facts", "folds", "moments", "edits"}

// ofRetired says which rows can't be derived again, because lines were retired: usage_sums follows answers.
var ofRetired = map[string]string{
	"answers":    ` WHERE (owner, stream) NOT IN (SELECT owner, stream FROM retired)`,
	"usage_sums": ` WHERE false`, "usage_totals": ` WHERE false`,
	"drops": ` WHERE (owner, stream) NOT IN (SELECT owner, stream FROM retired)`,
	"facts": ` WHERE (owner, stream) NOT IN (SELECT owner, id FROM streams WHERE retired > 0)`,
}

// emptyDerived truncates tables, or deletes their rows where the role may do only that, or some have to stay.
func emptyDerived(ctx context.Context, tx pgx.Tx) error {
	var may, some bool
	err := tx.QueryRow(ctx, `SELECT bool_and(has_table_privilege(t, 'TRUNCATE')),
  EXISTS (SELECT FROM retired) OR EXISTS (SELECT FROM streams WHERE retired > 0) FROM unnest($1::text[]) t`,
		derivedTables).Scan(&may, &some)
	if err != nil {
		return err
	}
	if may && !some {
		_, err = tx.Exec(ctx, `TRUNCATE `+strings.Join(derivedTables, ", "))
		return err
	}
	for _, table := range derivedTables {
		condition := ""
		if some {
			condition = ofRetired[table]
		}
		if _, err := tx.Exec(ctx, `DELETE FROM `+table+condition); err != nil {
			return err
		}
	}
	return nil
}
