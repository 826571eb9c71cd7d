package sqlite

import (
	"context"
	"database/sql"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// dialect is the dialect of SQLite.
type dialect struct{ db executor }

// executor is a pool or one connection of it, to write with too.
type executor interface {
	querier
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func (l dialect) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := l.db.ExecContext(ctx, query, sqlstore.CleanValues(args)...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (l dialect) Query(ctx context.Context, query string, args []any, row func(sqlstore.Scanner) error) error {
	rows, err := l.db.QueryContext(ctx, query, sqlstore.CleanValues(args)...)
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

// There is only one writer.

func (l dialect) Lock(ctx context.Context, query string, args []any, row func(sqlstore.Scanner) error) error {
	return l.Query(ctx, query, args, row)
}

func (l dialect) SkipLocked(ctx context.Context, query string, args []any, row func(sqlstore.Scanner) error) error {
	return l.Query(ctx, query, args, row)
}

func (l dialect) Hold(context.Context, sqlstore.Held, int64) error { return nil }

func (l dialect) TryHold(context.Context, sqlstore.Held, int64) (bool, error) { return true, nil }

// brief runs statements that end soon, and ignores the caller's cancellation: watching a context costs two goroutines
// and more than most of them.
type brief struct{ executor }

func (b brief) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return b.executor.ExecContext(context.WithoutCancel(ctx), query, args...)
}

func (b brief) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return b.executor.QueryContext(context.WithoutCancel(ctx), query, args...)
}

func (b brief) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return b.executor.QueryRowContext(context.WithoutCancel(ctx), query, args...)
}
