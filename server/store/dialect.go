package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// dialect runs SQL that both databases understand, on one connection or on a pool. Values are given as question marks;
// flags are 0 and 1.
type dialect interface {
	// exec runs a statement and returns how many rows it changed.
	exec(ctx context.Context, query string, args ...any) (int64, error)
	// query calls row with each row of an answer. Bytes that it scans are its own.
	query(ctx context.Context, query string, args []any, row func(scanner) error) error
	// lock is appended to a SELECT of rows that no other transaction may change until this one ends.
	lock() string
	// machine is the condition that streams are of a machine, and its value.
	machine(name string) (condition string, value any)
	// named is the condition that streams s have a session's name, and its value.
	named(session string) (condition string, value any)
	// enter finds or makes a stream, in a transaction, and keeps others from writing its artifacts until that ends.
	// server.ErrForgotten for a stream that must not be stored. A new stream does not lag: it has no lines.
	enter(ctx context.Context, owner int64, h *server.Head, now int64) (stream int64, project string, err error)
}

// list runs a query on either database and scans each of its rows.
func list[T any](ctx context.Context, l dialect, query string, args []any, scan func(scanner) (T, error)) (out []T,
	err error) {
	err = l.query(ctx, query, args, func(row scanner) error {
		x, err := scan(row)
		out = append(out, x)
		return err
	})
	return out, err
}

// first is the first row of a query; server.ErrNotFound without any.
func first[T any](ctx context.Context, l dialect, query string, args []any, scan func(scanner) (T, error)) (x T,
	err error) {
	out, err := list(ctx, l, query, args, scan)
	if err != nil || len(out) == 0 {
		return x, cmp.Or(err, server.ErrNotFound)
	}
	return out[0], nil
}

// flag is a bool in the stored form.
func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// enterStream fills in unknown facts of a stream. It changes nothing else that a batch of lines changes.
const enterStream = `
ON CONFLICT (%s) DO UPDATE SET
  project_hash = CASE s.project_hash WHEN '' THEN excluded.project_hash ELSE s.project_hash END,
  host = CASE excluded.host WHEN '' THEN s.host ELSE excluded.host END,
  project = CASE s.project WHEN '' THEN excluded.project ELSE s.project END,
  cwd = CASE s.cwd WHEN '' THEN excluded.cwd ELSE s.cwd END,
  path = CASE s.path WHEN '' THEN excluded.path ELSE s.path END,
  parent = CASE s.parent WHEN '' THEN excluded.parent ELSE s.parent END
RETURNING id, project_hash`

// sqliteDialect is the dialect of SQLite.
type sqliteDialect struct{ db executor }

// executor is a pool or one connection of it, to write with too.
type executor interface {
	querier
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func (l sqliteDialect) exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := l.db.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (l sqliteDialect) query(ctx context.Context, query string, args []any, row func(scanner) error) error {
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

func (l sqliteDialect) lock() string { return "" } // there is only one writer

func (l sqliteDialect) machine(name string) (string, any) { return `machine = ?`, name }

func (l sqliteDialect) named(session string) (string, any) { return `s.session_id = ?`, session }

func (l sqliteDialect) enter(ctx context.Context, owner int64, h *server.Head,
	now int64) (stream int64, project string, err error) {
	var gone bool
	if err := l.db.QueryRowContext(ctx, isForgotten, owner, jsonList(forgettable(h))).Scan(&gone); err != nil {
		return 0, "", fmt.Errorf("look for forgotten session: %w", err)
	}
	if gone {
		return 0, "", fmt.Errorf("session %q: %w", h.SessionID, server.ErrForgotten)
	}
	c := clean(*h)
	err = l.db.QueryRowContext(ctx, `
INSERT INTO streams AS s (session_id, machine, project_hash, host, project, cwd, path, parent, first_received,
  last_received, owner, version, derived)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10, 1, 1)`+fmt.Sprintf(enterStream, "owner, session_id, machine"),
		h.SessionID, h.Machine, c.ProjectHash, c.Host, c.Project, c.Cwd, c.Path, c.Parent, now, owner).
		Scan(&stream, &project)
	if err != nil {
		return 0, "", fmt.Errorf("write stream: %w", err)
	}
	return stream, project, nil
}

// forgettable are the names by which a head's session may have been forgotten.
func forgettable(h *server.Head) []string {
	names := transcript.ForgetNames(h.SessionID)
	if h.Parent != "" {
		names = append(names, transcript.ForgetNames(h.Parent)...)
	}
	return names
}

// pgDialect is the dialect of PostgreSQL.
type pgDialect struct {
	db interface {
		Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	}
}

func (l pgDialect) exec(ctx context.Context, query string, args ...any) (int64, error) {
	query, args = numbered(query, args)
	tag, err := l.db.Exec(ctx, query, args...)
	return tag.RowsAffected(), err
}

func (l pgDialect) query(ctx context.Context, query string, args []any, row func(scanner) error) error {
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

func (l pgDialect) lock() string { return " FOR UPDATE" }

func (l pgDialect) machine(name string) (string, any) { return `machine_key = ?`, key(name) }

func (l pgDialect) named(session string) (string, any) { return `s.session_key = ?`, key(session) }

func (l pgDialect) enter(ctx context.Context, owner int64, h *server.Head,
	now int64) (stream int64, project string, err error) {
	c := clean(*h)
	err = l.query(ctx, `
INSERT INTO streams AS s (session_key, owner, machine_key, session_id, machine, project_hash, host, project, cwd,
  path, parent, first_received, last_received, version, derived)
SELECT ?::bytea, ?::bigint, ?::bytea, ?::text, ?::text, ?::text, ?::text, ?::text, ?::text, ?::text, ?::text,
  ?::bigint, ?::bigint, 1, 1
WHERE NOT EXISTS (SELECT FROM forgotten WHERE owner = ?::bigint AND session_key = ANY (?::bytea[]))`+
		fmt.Sprintf(enterStream, "session_key, owner, machine_key"),
		[]any{key(h.SessionID), owner, key(h.Machine), c.SessionID, c.Machine, c.ProjectHash, c.Host, c.Project, c.Cwd,
			c.Path, c.Parent, now, now, owner, notes(h)},
		func(row scanner) error { return row.Scan(&stream, &project) })
	if err != nil {
		return 0, "", fmt.Errorf("write stream: %w", err)
	}
	if stream == 0 {
		return 0, "", fmt.Errorf("session %q: %w", h.SessionID, server.ErrForgotten)
	}
	return stream, project, nil
}
