package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
)

// edit runs one statement that must change a row: server.ErrNotFound when it changes none, server.ErrExists when
// another row has the name.
func (s *SQLite) edit(ctx context.Context, what, query string, args ...any) error {
	err := s.withWriter(ctx, func(c *sql.Conn) error { return editOne(ctx, c, query, args...) })
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

const selectUser = `SELECT u.id, u.name, u.role, u.created, u.disabled `

// userRow scans the columns of selectUser.
type userRow struct {
	u                 server.User
	created, disabled int64
}

func (r *userRow) columns() []any {
	return []any{&r.u.ID, &r.u.Name, &r.u.Role, &r.created, &r.disabled}
}

func (r *userRow) user() server.User {
	r.u.Created, r.u.Disabled = moment(r.created), moment(r.disabled)
	return r.u
}

func scanUser(row scanner) (server.User, error) {
	var r userRow
	err := row.Scan(r.columns()...)
	return r.user(), err
}

// AddUser implements server.Accounts.
func (s *SQLite) AddUser(ctx context.Context, name string, role server.Role, at time.Time) (server.User, error) {
	u := server.User{Name: cleanText(name), Role: role, Created: moment(micros(at))}
	err := s.withWriter(ctx, func(c *sql.Conn) error {
		return translate(c.QueryRowContext(ctx, `INSERT INTO users (name, role, created) VALUES (?, ?, ?) RETURNING id`,
			u.Name, string(role), micros(at)).Scan(&u.ID))
	})
	if err != nil {
		return server.User{}, fmt.Errorf("add user %q: %w", name, err)
	}
	return u, nil
}

// people finds accounts, the same in both databases.
type people struct{ reader dialect }

// FindUser implements server.Accounts.
func (p *people) FindUser(ctx context.Context, name string) (server.User, error) {
	u, err := first(ctx, p.reader, selectUser+`FROM users u WHERE u.name = ?`, []any{cleanText(name)}, scanUser)
	if err != nil {
		return server.User{}, fmt.Errorf("find user %q: %w", name, err)
	}
	return u, nil
}

// Users implements server.Accounts.
func (p *people) Users(ctx context.Context) ([]server.User, error) {
	out, err := list(ctx, p.reader, selectUser+`FROM users u ORDER BY u.id`, nil, scanUser)
	if err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	return out, nil
}

// SetRole implements server.Accounts.
func (s *SQLite) SetRole(ctx context.Context, user int64, role server.Role) error {
	return s.edit(ctx, "change role", `UPDATE users SET role = ? WHERE id = ?`, string(role), user)
}

// DisableUser implements server.Accounts.
func (s *SQLite) DisableUser(ctx context.Context, user int64, at time.Time) error {
	return s.edit(ctx, "disable user", `UPDATE users SET disabled = ? WHERE id = ?`, micros(at), user)
}

// AddShare implements server.Accounts.
func (s *SQLite) AddShare(ctx context.Context, h server.Share) error {
	return s.edit(ctx, "share project", `
INSERT INTO shares (with_user, owner, project_hash, project, created, documents)
SELECT ?1, ?2, ?3, ?4, ?5, ?6
WHERE EXISTS (SELECT 1 FROM users WHERE id = ?1) AND EXISTS (SELECT 1 FROM users WHERE id = ?2)
ON CONFLICT DO UPDATE SET documents = excluded.documents`,
		h.With, h.Owner, cleanText(h.ProjectHash), cleanText(h.Project), micros(h.Created), flag(h.Documents))
}

// RemoveShare implements server.Accounts.
func (s *SQLite) RemoveShare(ctx context.Context, h server.Share) error {
	return s.edit(ctx, "end sharing", `DELETE FROM shares WHERE with_user = ? AND owner = ? AND project_hash = ?`,
		h.With, h.Owner, cleanText(h.ProjectHash))
}

const selectShares = `
SELECT owner, with_user, project_hash, project, documents = 1, created FROM shares
ORDER BY created, owner, with_user, project_hash`

func scanShare(row scanner) (h server.Share, err error) {
	var created int64
	err = row.Scan(&h.Owner, &h.With, &h.ProjectHash, &h.Project, &h.Documents, &created)
	h.Created = moment(created)
	return h, err
}

// Shares implements server.Accounts.
func (p *people) Shares(ctx context.Context) ([]server.Share, error) {
	out, err := list(ctx, p.reader, selectShares, nil, scanShare)
	if err != nil {
		return nil, fmt.Errorf("list shares: %w", err)
	}
	return out, nil
}

// translate converts errors to those of package server.
func translate(err error) error {
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return server.ErrNotFound
	case isTaken(err):
		return server.ErrExists
	}
	return err
}
