package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// database implements sqlstore.DB.
type database struct {
	sqlstore.Dialect
	s *Store
}

// Read implements sqlstore.DB.
func (b database) Read(ctx context.Context, fn func(sqlstore.Dialect) error) error {
	conn, err := b.s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	_, err = conn.Exec(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return err
	}
	err = fn(dialect{conn})
	_, end := conn.Exec(context.WithoutCancel(ctx), `ROLLBACK`)
	if err != nil {
		return err // a connection that is broken fails to roll back too
	}
	return end
}

// Write implements sqlstore.DB. PostgreSQL keeps removed bytes in its files until it vacuums.
func (b database) Write(ctx context.Context, how sqlstore.How, fn func(sqlstore.Dialect) error) error {
	return b.s.Tier.Retry(ctx, func() error {
		return b.s.writeAs(ctx, how, func(tx pgx.Tx) error { return fn(dialect{tx}) })
	})
}

// writeAs runs fn in a transaction. Masking may take as long as it takes.
func (s *Store) writeAs(ctx context.Context, how sqlstore.How, fn func(pgx.Tx) error) error {
	if how&sqlstore.Once != 0 {
		return translate(s.once(ctx, fn))
	}
	if how != sqlstore.Erase {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, pgPatience)
		defer cancel()
	}
	run, begin := s.inBackground, []string(nil)
	switch {
	case how == 0:
		run, begin = s.withTx, []string{byKey, shareForgotten}
	case how&sqlstore.Erase != 0:
		begin = []string{byKey}
	}
	if how&sqlstore.Lazy != 0 { // for the disk nor for a standby
		begin = append(begin, `SET LOCAL synchronous_commit = off`)
	}
	return run(ctx, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		for _, query := range begin {
			batch.Queue(query)
		}
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return fmt.Errorf("begin transaction: %w", err)
		}
		return fn(tx)
	})
}

// Tell implements sqlstore.DB.
func (b database) Tell(c server.Change) {
	b.s.begin()
	b.s.notices.tell(c)
}

// Snapshots implements sqlstore.DB: their numbers are those of transactions. It knows of all servers on the database,
// and of replicas that send feedback.
func (b database) Snapshots(ctx context.Context) (oldest, next int64, err error) {
	err = b.s.pool.QueryRow(ctx, `
SELECT n - coalesce((SELECT max(age(backend_xmin)) FROM pg_stat_activity
  WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()
  AND (datname = current_database() AND backend_type = 'client backend' OR backend_type = 'walsender')), 0), n
FROM (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS n) s`).Scan(&oldest, &next)
	return oldest, next, sqlstore.Wrap(err, "look for snapshots")
}
