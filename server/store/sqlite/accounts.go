package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// accounts are users, keys, shares and logins. Set once, when a store opens.
type accounts struct {
	sqlstore.People
	store *Store
}

// edit runs one statement that must change a row: server.ErrNotFound when it changes none, server.ErrExists when
// another row has the name.
func (a *accounts) edit(ctx context.Context, what, query string, args ...any) error {
	err := a.store.withWriter(ctx, func(c *sql.Conn) error { return editOne(ctx, c, query, args...) })
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func editOne(ctx context.Context, c *sql.Conn, query string, args ...any) error {
	res, err := c.ExecContext(ctx, query, args...)
	if err != nil {
		return translate(err)
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return server.ErrNotFound
}

// AddUser implements server.Accounts.
func (a *accounts) AddUser(ctx context.Context, name string, role server.Role, at time.Time) (server.User, error) {
	u := server.User{Name: sqlstore.CleanText(name), Role: role, Created: sqlstore.Moment(sqlstore.Micros(at))}
	err := a.store.withWriter(ctx, func(c *sql.Conn) error {
		return translate(c.QueryRowContext(ctx, `INSERT INTO users (name, role, created) VALUES (?, ?, ?) RETURNING id`,
			u.Name, string(role), sqlstore.Micros(at)).Scan(&u.ID))
	})
	if err != nil {
		return server.User{}, fmt.Errorf("add user %q: %w", name, err)
	}
	return u, nil
}

// SetRole implements server.Accounts.
func (a *accounts) SetRole(ctx context.Context, user int64, role server.Role) error {
	return a.edit(ctx, "change role", `UPDATE users SET role = ? WHERE id = ?`, string(role), user)
}

// DisableUser implements server.Accounts.
func (a *accounts) DisableUser(ctx context.Context, user int64, at time.Time) error {
	return a.edit(ctx, "disable user", `UPDATE users SET disabled = ? WHERE id = ?`, sqlstore.Micros(at), user)
}

// AddShare implements server.Accounts.
func (a *accounts) AddShare(ctx context.Context, h server.Share) error {
	return a.edit(ctx, "share project", `
INSERT INTO shares (with_user, owner, project_hash, project, created, documents)
SELECT ?1, ?2, ?3, ?4, ?5, ?6
WHERE EXISTS (SELECT 1 FROM users WHERE id = ?1) AND EXISTS (SELECT 1 FROM users WHERE id = ?2)
ON CONFLICT DO UPDATE SET documents = excluded.documents`,
		h.With, h.Owner, sqlstore.CleanText(h.ProjectHash), sqlstore.CleanText(h.Project), sqlstore.Micros(h.Created),
		sqlstore.Flag(h.Documents))
}

// RemoveShare implements server.Accounts.
func (a *accounts) RemoveShare(ctx context.Context, h server.Share) error {
	return a.edit(ctx, "end sharing", `DELETE FROM shares WHERE with_user = ? AND owner = ? AND project_hash = ?`,
		h.With, h.Owner, sqlstore.CleanText(h.ProjectHash))
}
