package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// accounts are users, keys, shares and logins. Set once, when a store opens.
type accounts struct {
	sqlstore.People
	store *Store
	keys  *lines.Lookups[[32]byte, server.Key]
}

func newAccounts(s *Store) accounts {
	return accounts{sqlstore.NewPeople(dialect{s.pool}), s, &lines.Lookups[[32]byte, server.Key]{Ask: s.findKeys}}
}

// edit runs one statement in its own transaction and returns server.ErrNotFound when it changed no row.
func (a *accounts) edit(ctx context.Context, what, sql string, args ...any) error {
	err := a.store.once(ctx, func(tx pgx.Tx) error { return editPg(ctx, tx, sql, args...) })
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func editPg(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	tag, err := tx.Exec(ctx, sql, args...)
	if err == nil && tag.RowsAffected() == 0 {
		return server.ErrNotFound
	}
	return translate(err)
}

// translate converts errors to those of package server.
func translate(err error) error {
	p, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && p.Code == "23505": // unique
		return server.ErrExists
	case errors.Is(err, pgx.ErrNoRows):
		return server.ErrNotFound
	}
	return err
}

// collectPg runs a query and scans each of its rows.
func collectPg[T any](ctx context.Context, s *Store, sql string, args []any,
	scan func(sqlstore.Scanner) (T, error)) ([]T, error) {
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (T, error) { return scan(row) })
}

// AddUser implements server.Accounts.
func (a *accounts) AddUser(ctx context.Context, name string, role server.Role, at time.Time) (server.User, error) {
	u := server.User{Name: sqlstore.CleanText(name), Role: role, Created: sqlstore.Moment(sqlstore.Micros(at))}
	err := a.store.once(ctx, func(tx pgx.Tx) error {
		return translate(tx.QueryRow(ctx, `INSERT INTO users (name, role, created) VALUES ($1, $2, $3) RETURNING id`,
			u.Name, string(role), sqlstore.Micros(at)).Scan(&u.ID))
	})
	if err != nil {
		return server.User{}, fmt.Errorf("add user %q: %w", name, err)
	}
	return u, nil
}

// SetRole implements server.Accounts.
func (a *accounts) SetRole(ctx context.Context, user int64, role server.Role) error {
	return a.edit(ctx, "change role", `UPDATE users SET role = $1 WHERE id = $2`, string(role), user)
}

// DisableUser implements server.Accounts.
func (a *accounts) DisableUser(ctx context.Context, user int64, at time.Time) error {
	return a.edit(ctx, "disable user", `UPDATE users SET disabled = $1 WHERE id = $2`, sqlstore.Micros(at), user)
}

// AddShare implements server.Accounts.
func (a *accounts) AddShare(ctx context.Context, h server.Share) error {
	return a.edit(ctx, "share project", `
INSERT INTO shares (with_user, owner, project_key, project_hash, project, created, documents)
SELECT r.id, o.id, $3::bytea, $4::text, $5::text, $6::bigint, $7::bigint
FROM users r, users o WHERE r.id = $1 AND o.id = $2
ON CONFLICT (with_user, owner, project_key) DO UPDATE SET documents = excluded.documents`,
		h.With, h.Owner, sqlstore.Key(h.ProjectHash), sqlstore.CleanText(h.ProjectHash), sqlstore.CleanText(h.Project),
		sqlstore.Micros(h.Created),
		sqlstore.Flag(h.Documents))
}

// RemoveShare implements server.Accounts.
func (a *accounts) RemoveShare(ctx context.Context, h server.Share) error {
	return a.edit(ctx, "end sharing", `DELETE FROM shares WHERE with_user = $1 AND owner = $2 AND project_key = $3`,
		h.With, h.Owner, sqlstore.Key(h.ProjectHash))
}
