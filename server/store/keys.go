package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/ccship/ccship/server"
)

// isTaken reports whether a row with the same name exists.
func isTaken(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code() == lib.SQLITE_CONSTRAINT_UNIQUE || e.Code() == lib.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// isBusy reports whether another process has the database.
func isBusy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code()&0xff == lib.SQLITE_BUSY || e.Code()&0xff == lib.SQLITE_LOCKED)
}

// isPrimaryKey reports whether a row with the same id exists.
func isPrimaryKey(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code() == lib.SQLITE_CONSTRAINT_PRIMARYKEY || e.Code() == lib.SQLITE_CONSTRAINT_ROWID)
}

const selectKey = selectUser + `, k.id, k.name, k.hash, k.created, k.used, k.revoked
FROM keys k JOIN users u ON u.id = k."user" `

func scanKey(row scanner) (server.Key, error) {
	var k server.Key
	var user userRow
	var hash []byte
	var created, used, revoked int64
	err := row.Scan(append(user.columns(), &k.ID, &k.Name, &hash, &created, &used, &revoked)...)
	copy(k.Hash[:], hash)
	k.User, k.Created, k.Used, k.Revoked = user.user(), moment(created), moment(used), moment(revoked)
	return k, err
}

// FindKey implements server.Keyring.
func (p *people) FindKey(ctx context.Context, hash [32]byte) (server.Key, error) {
	k, err := first(ctx, p.reader, selectKey+`WHERE k.hash = ?`, []any{hash[:]}, scanKey)
	if err != nil {
		return server.Key{}, fmt.Errorf("find key: %w", err)
	}
	return k, nil
}

// TouchKey implements server.Keyring.
func (s *SQLite) TouchKey(ctx context.Context, id int64, at time.Time) error {
	return s.edit(ctx, "note use of key", `UPDATE keys SET used = max(used, ?) WHERE id = ?`, micros(at), id)
}

// AddKey implements server.Accounts.
func (s *SQLite) AddKey(ctx context.Context, user int64, name string, hash [32]byte, at time.Time) error {
	return s.edit(ctx, fmt.Sprintf("add key %q", name), `
INSERT INTO keys (user, name, hash, created) SELECT id, ?, ?, ? FROM users WHERE id = ?`,
		cleanText(name), hash[:], micros(at), user)
}

// Keys implements server.Accounts.
func (p *people) Keys(ctx context.Context, user int64) ([]server.Key, error) {
	var f filter
	if user != 0 {
		f.add(`u.id = ?`, user)
	}
	out, err := list(ctx, p.reader, selectKey+f.where()+` ORDER BY k.id`, f.args, scanKey)
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return out, nil
}

// RevokeKey implements server.Accounts.
func (s *SQLite) RevokeKey(ctx context.Context, name string, at time.Time) error {
	return s.edit(ctx, fmt.Sprintf("revoke key %q", name),
		`UPDATE keys SET revoked = CASE WHEN revoked = 0 OR revoked > ?1 THEN ?1 ELSE revoked END WHERE name = ?2`,
		micros(at), cleanText(name))
}

// RotateKey implements server.Accounts. The old hash stays under the name with the time until which it is valid.
func (s *SQLite) RotateKey(ctx context.Context, name string, hash [32]byte, at, grace time.Time) error {
	name = cleanText(name)
	err := s.withWriter(ctx, func(c *sql.Conn) error {
		k, err := scanKey(c.QueryRowContext(ctx, selectKey+`WHERE k.name = ? AND (k.revoked = 0 OR k.revoked > ?)`,
			name, micros(at)))
		if err != nil {
			return translate(err)
		}
		until := grace
		if !k.Revoked.IsZero() && k.Revoked.Before(grace) {
			until = k.Revoked
		}
		err = editOne(ctx, c, `UPDATE keys SET name = ?, revoked = ? WHERE id = ?`,
			rotatedName(name, k.ID, until), micros(until), k.ID)
		if err != nil {
			return err
		}
		return editOne(ctx, c, `INSERT INTO keys (user, name, hash, created) VALUES (?, ?, ?, ?)`,
			k.User.ID, name, hash[:], micros(at))
	})
	if err != nil {
		return fmt.Errorf("rotate key %q: %w", name, err)
	}
	return nil
}

// rotatedName is the new name of a key whose name another key has taken over.
func rotatedName(name string, id int64, until time.Time) string {
	return fmt.Sprintf("%s (rotated, until %s, %d)", name, until.UTC().Format("2006-01-02 15:04"), id)
}

// longOver is the age at which expired logins and tickets are removed, when a new one is made.
const longOver = 90 * 24 * time.Hour

// AddLogin implements server.Accounts.
func (s *SQLite) AddLogin(ctx context.Context, token [32]byte, l server.Login) error {
	err := s.withWriter(ctx, func(c *sql.Conn) error {
		if _, err := c.ExecContext(ctx, `DELETE FROM logins WHERE until < ?`, micros(l.Until.Add(-longOver))); err != nil {
			return err
		}
		return editOne(ctx, c, `INSERT INTO logins (token, user, key, until) SELECT ?, id, ?, ? FROM users WHERE id = ?`,
			token[:], l.Key, micros(l.Until), l.User.ID)
	})
	if err != nil {
		return fmt.Errorf("add login: %w", err)
	}
	return nil
}

// FindLogin implements server.Accounts.
func (p *people) FindLogin(ctx context.Context, token [32]byte, now time.Time) (server.Login, error) {
	l, err := first(ctx, p.reader, selectUser+`, l.key, l.until
FROM logins l JOIN users u ON u.id = l."user"
WHERE l.token = ? AND l.until > ? AND u.disabled = 0
  AND (l.key = 0 OR EXISTS (SELECT 1 FROM keys k WHERE k.id = l.key AND (k.revoked = 0 OR k.revoked > ?)))`,
		[]any{token[:], micros(now), micros(now)}, scanLogin)
	if err != nil {
		return server.Login{}, fmt.Errorf("find login: %w", err)
	}
	return l, nil
}

func scanLogin(row scanner) (l server.Login, err error) {
	var user userRow
	var until int64
	err = row.Scan(append(user.columns(), &l.Key, &until)...)
	l.User, l.Until = user.user(), moment(until)
	return l, err
}

// RemoveLogin implements server.Accounts.
func (s *SQLite) RemoveLogin(ctx context.Context, token [32]byte) error {
	return s.edit(ctx, "end login", `DELETE FROM logins WHERE token = ?`, token[:])
}

// AddTicket implements server.Accounts.
func (s *SQLite) AddTicket(ctx context.Context, ticket [32]byte, user int64, until time.Time) error {
	err := s.withWriter(ctx, func(c *sql.Conn) error {
		if _, err := c.ExecContext(ctx, `DELETE FROM tickets WHERE until < ?`, micros(until.Add(-longOver))); err != nil {
			return err
		}
		return editOne(ctx, c, `INSERT INTO tickets (ticket, user, until) SELECT ?, id, ? FROM users WHERE id = ?`,
			ticket[:], micros(until), user)
	})
	if err != nil {
		return fmt.Errorf("add one-time link: %w", err)
	}
	return nil
}

// TakeTicket implements server.Accounts.
func (s *SQLite) TakeTicket(ctx context.Context, ticket [32]byte, now time.Time) (server.User, error) {
	var r userRow
	var found error
	err := s.withWriter(ctx, func(c *sql.Conn) error {
		found = c.QueryRowContext(ctx, selectUser+`FROM tickets t JOIN users u ON u.id = t.user
WHERE t.ticket = ? AND t.until > ? AND u.disabled = 0`, ticket[:], micros(now)).Scan(r.columns()...)
		_, err := c.ExecContext(ctx, `DELETE FROM tickets WHERE ticket = ?`, ticket[:])
		return err
	})
	if err := errors.Join(translate(found), err); err != nil {
		return server.User{}, fmt.Errorf("use one-time link: %w", err)
	}
	return r.user(), nil
}
