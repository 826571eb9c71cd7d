package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// dialect is the dialect of PostgreSQL.
type dialect struct {
	db interface {
		Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	}
}

func (l dialect) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	query, args = numbered(query, args)
	tag, err := l.db.Exec(ctx, query, args...)
	return tag.RowsAffected(), err
}

func (l dialect) Query(ctx context.Context, query string, args []any, row func(sqlstore.Scanner) error) error {
	query, args = numbered(query, args)
	rows, err := l.db.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (l dialect) Lock(ctx context.Context, query string, args []any, row func(sqlstore.Scanner) error) error {
	return l.Query(ctx, query+" FOR UPDATE", args, row)
}

func (l dialect) SkipLocked(ctx context.Context, query string, args []any, row func(sqlstore.Scanner) error) error {
	return l.Query(ctx, query+" FOR UPDATE SKIP LOCKED", args, row)
}

// A lock that two ids share costs little.

func (l dialect) Hold(ctx context.Context, what sqlstore.Held, id int64) error {
	if _, err := l.db.Exec(ctx, `SELECT pg_advisory_xact_lock($1, $2)`, int32(what), int32(id)); err != nil {
		return fmt.Errorf("wait for another server: %w", err)
	}
	return nil
}

func (l dialect) TryHold(ctx context.Context, what sqlstore.Held, id int64) (free bool, err error) {
	err = l.Query(ctx, `SELECT pg_try_advisory_xact_lock(?, ?)`, []any{int32(what), int32(id)},
		func(row sqlstore.Scanner) error { return row.Scan(&free) })
	return free, err
}
