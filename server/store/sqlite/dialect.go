package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/ccship/ccship/server"
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
	query, args = sqlstore.WithoutOwners(query, args)
	res, err := l.db.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (l dialect) Query(ctx context.Context, query string, args []any, row func(sqlstore.Scanner) error) error {
	query, args = sqlstore.WithoutOwners(query, args)
	rows, err := l.db.QueryContext(ctx, query, args...)
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

func (l dialect) Lock() string { return "" } // there is only one writer

func (l dialect) Machine(name string) (string, any) { return `machine = ?`, name }

func (l dialect) Named(session string) (string, any) { return `s.session_id = ?`, session }

func (l dialect) Forgotten(ctx context.Context, owner int64, h *server.Head) (gone bool, err error) {
	err = l.db.QueryRowContext(ctx, isForgotten, owner, jsonList(sqlstore.ForgettableNames(h))).Scan(&gone)
	if err != nil {
		return false, fmt.Errorf("look for forgotten session: %w", err)
	}
	return gone, nil
}

func (l dialect) LockUser(context.Context, int64) error { return nil } // there is only one writer

func (l dialect) Enter(ctx context.Context, owner int64, h *server.Head,
	now int64) (stream int64, project string, err error) {
	gone, err := l.Forgotten(ctx, owner, h)
	if err != nil {
		return 0, "", err
	}
	if gone {
		return 0, "", fmt.Errorf("session %q: %w", h.SessionID, server.ErrForgotten)
	}
	c := sqlstore.Clean(*h)
	err = l.db.QueryRowContext(ctx, `
INSERT INTO streams AS s (session_id, machine, project_hash, host, project, cwd, path, parent, first_received,
  last_received, owner, version, derived)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10, 1, 1)`+fmt.Sprintf(sqlstore.EnterStream,
		"owner, session_id, machine"),
		h.SessionID, h.Machine, c.ProjectHash, c.Host, c.Project, c.Cwd, c.Path, c.Parent, now, owner).
		Scan(&stream, &project)
	if err != nil {
		return 0, "", fmt.Errorf("write stream: %w", err)
	}
	return stream, project, nil
}

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
