package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ccship/ccship/server"
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

func (l dialect) Lock() string { return " FOR UPDATE" }

func (l dialect) Machine(name string) (string, any) { return `machine_key = ?`, sqlstore.Key(name) }

func (l dialect) Named(session string) (string, any) {
	return `s.session_key = ?`, sqlstore.Key(session)
}

func (l dialect) Forgotten(ctx context.Context, owner int64, h *server.Head) (gone bool, err error) {
	err = l.Query(ctx, `SELECT EXISTS (SELECT FROM forgotten WHERE owner = ? AND session_key = ANY (?::bytea[]))`,
		[]any{owner, sqlstore.TombstoneKeys(h)}, func(row sqlstore.Scanner) error { return row.Scan(&gone) })
	if err != nil {
		return false, fmt.Errorf("look for forgotten session: %w", err)
	}
	return gone, nil
}

func (l dialect) LockUser(ctx context.Context, user int64) error {
	if _, err := l.db.Exec(ctx, `SELECT pg_advisory_xact_lock($1, $2)`, lockQuota, int32(user)); err != nil {
		return fmt.Errorf("wait for another server: %w", err)
	}
	return nil
}

func (l dialect) Enter(ctx context.Context, owner int64, h *server.Head,
	now int64) (stream int64, project string, err error) {
	c := sqlstore.Clean(*h)
	err = l.Query(ctx, `
INSERT INTO streams AS s (owner, session_key, machine_key, session_id, machine, project_hash, host, project, cwd,
  path, parent, first_received, last_received, version, derived)
SELECT ?::bigint, ?::bytea, ?::bytea, ?::text, ?::text, ?::text, ?::text, ?::text, ?::text, ?::text, ?::text,
  ?::bigint, ?::bigint, 1, 1
WHERE NOT EXISTS (SELECT FROM forgotten WHERE owner = ?::bigint AND session_key = ANY (?::bytea[]))`+
		fmt.Sprintf(sqlstore.EnterStream, "owner, session_key, machine_key"),
		[]any{owner, sqlstore.Key(h.SessionID), sqlstore.Key(h.Machine), c.SessionID, c.Machine, c.ProjectHash, c.Host,
			c.Project, c.Cwd,
			c.Path, c.Parent, now, now, owner, sqlstore.TombstoneKeys(h)},
		func(row sqlstore.Scanner) error { return row.Scan(&stream, &project) })
	if err != nil {
		return 0, "", fmt.Errorf("write stream: %w", err)
	}
	if stream == 0 {
		return 0, "", fmt.Errorf("session %q: %w", h.SessionID, server.ErrForgotten)
	}
	return stream, project, nil
}
