package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// TouchKey implements server.Keyring.
func (a *accounts) TouchKey(ctx context.Context, id int64, at time.Time) error {
	return a.edit(ctx, "note use of key", `UPDATE keys SET used = max(used, ?) WHERE id = ?`, sqlstore.Micros(at), id)
}

// AddKey implements server.Accounts.
func (a *accounts) AddKey(ctx context.Context, k server.Key) error {
	err := a.store.withWriter(ctx, func(c *sql.Conn) error {
		if err := sqlstore.CheckKeys(ctx, dialect{c}, k.User.ID, k); err != nil {
			return err
		}
		return editOne(ctx, c, `
INSERT INTO keys (user, name, hash, created, made_by) SELECT id, ?, ?, ?, ? FROM users WHERE id = ?`,
			sqlstore.CleanText(k.Name), k.Hash[:], sqlstore.Micros(k.Created), k.By, k.User.ID)
	})
	if err != nil {
		return fmt.Errorf("add key %q: %w", k.Name, err)
	}
	return nil
}

// RevokeKey implements server.Accounts.
func (a *accounts) RevokeKey(ctx context.Context, name string, at time.Time) error {
	err := a.store.withWriter(ctx, func(c *sql.Conn) error {
		done, err := c.ExecContext(ctx, sqlstore.RevokeKeys, sqlstore.Micros(at), sqlstore.CleanText(name))
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return cmp.Or(err, server.ErrNotFound)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("revoke key %q: %w", name, err)
	}
	return nil
}

// RotateKey implements server.Accounts. The old hash stays under the name with the time until which it is valid.
func (a *accounts) RotateKey(ctx context.Context, next server.Key, grace time.Time) error {
	name := sqlstore.CleanText(next.Name)
	err := a.store.withWriter(ctx, func(c *sql.Conn) error {
		k, err := sqlstore.ScanKey(c.QueryRowContext(ctx,
			sqlstore.SelectKey+`WHERE k.name = ? AND (k.revoked = 0 OR k.revoked > ?)`,
			name, sqlstore.Micros(next.Created)))
		if err != nil {
			return translate(err)
		}
		if err := sqlstore.CheckKeys(ctx, dialect{c}, k.User.ID, next); err != nil {
			return err
		}
		until := grace
		if !k.Revoked.IsZero() && k.Revoked.Before(grace) {
			until = k.Revoked
		}
		err = editOne(ctx, c, `UPDATE keys SET name = ?, revoked = ? WHERE id = ?`,
			sqlstore.RotatedName(name, k.ID, until), sqlstore.Micros(until), k.ID)
		if err != nil {
			return err
		}
		return editOne(ctx, c, `INSERT INTO keys (user, name, hash, created, made_by, chain) VALUES (?, ?, ?, ?, ?, ?)`,
			k.User.ID, name, next.Hash[:], sqlstore.Micros(next.Created), next.By, cmp.Or(k.Chain, k.ID))
	})
	if err != nil {
		return fmt.Errorf("rotate key %q: %w", name, err)
	}
	return nil
}

// AddLogin implements server.Accounts.
func (a *accounts) AddLogin(ctx context.Context, token [32]byte, l server.Login) error {
	err := a.store.withWriter(ctx, func(c *sql.Conn) error {
		if _, err := c.ExecContext(ctx, `DELETE FROM logins WHERE until < ?`,
			sqlstore.Micros(l.Until.Add(-sqlstore.LongOver))); err != nil {
			return err
		}
		if _, err := c.ExecContext(ctx, `DELETE FROM logins WHERE user = ?1 AND token NOT IN
  (SELECT token FROM logins WHERE user = ?1 ORDER BY until DESC LIMIT ?2)`, l.User.ID,
			sqlstore.MaxLogins-1); err != nil {
			return err
		}
		return editOne(ctx, c, `INSERT INTO logins (token, user, key, until) SELECT ?, id, ?, ? FROM users WHERE id = ?`,
			token[:], l.Key, sqlstore.Micros(l.Until), l.User.ID)
	})
	if err != nil {
		return fmt.Errorf("add login: %w", err)
	}
	return nil
}

// RemoveLogin implements server.Accounts.
func (a *accounts) RemoveLogin(ctx context.Context, token [32]byte) error {
	return a.edit(ctx, "end login", `DELETE FROM logins WHERE token = ?`, token[:])
}

// AddTicket implements server.Accounts.
func (a *accounts) AddTicket(ctx context.Context, ticket [32]byte, user int64, until time.Time) error {
	err := a.store.withWriter(ctx, func(c *sql.Conn) error {
		if _, err := c.ExecContext(ctx, `DELETE FROM tickets WHERE until < ?`,
			sqlstore.Micros(until.Add(-sqlstore.LongOver))); err != nil {
			return err
		}
		if _, err := c.ExecContext(ctx, `DELETE FROM tickets WHERE user = ?1 AND ticket NOT IN
  (SELECT ticket FROM tickets WHERE user = ?1 ORDER BY until DESC LIMIT ?2)`, user,
			sqlstore.MaxTickets-1); err != nil {
			return err
		}
		return editOne(ctx, c, `INSERT INTO tickets (ticket, user, until) SELECT ?, id, ? FROM users WHERE id = ?`,
			ticket[:], sqlstore.Micros(until), user)
	})
	if err != nil {
		return fmt.Errorf("add one-time link: %w", err)
	}
	return nil
}

// TakeTicket implements server.Accounts.
func (a *accounts) TakeTicket(ctx context.Context, ticket [32]byte, now time.Time) (server.User, error) {
	var r sqlstore.UserRow
	var found error
	err := a.store.withWriter(ctx, func(c *sql.Conn) error {
		found = c.QueryRowContext(ctx, sqlstore.SelectUser+`FROM tickets t JOIN users u ON u.id = t.user
WHERE t.ticket = ? AND t.until > ? AND u.disabled = 0`, ticket[:], sqlstore.Micros(now)).Scan(r.Columns()...)
		_, err := c.ExecContext(ctx, `DELETE FROM tickets WHERE ticket = ?`, ticket[:])
		return err
	})
	if err := errors.Join(translate(found), err); err != nil {
		return server.User{}, fmt.Errorf("use one-time link: %w", err)
	}
	return r.User(), nil
}
