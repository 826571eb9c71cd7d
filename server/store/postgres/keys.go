package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// FindKey implements server.Keyring. Every request asks for one: those of a crowd share a statement.
func (a *accounts) FindKey(ctx context.Context, hash [32]byte) (server.Key, error) {
	k, ok, err := a.keys.Find(ctx, hash)
	if err == nil && !ok {
		err = server.ErrNotFound
	}
	if err != nil {
		return server.Key{}, fmt.Errorf("find key: %w", err)
	}
	return k, nil
}

func (s *Store) findKeys(ctx context.Context, hashes [][32]byte) (map[[32]byte]server.Key, error) {
	list := make([][]byte, len(hashes))
	for i := range hashes {
		list[i] = hashes[i][:]
	}
	found := make(map[[32]byte]server.Key, len(hashes))
	err := dialect{s.pool}.Query(ctx, sqlstore.SelectKey+`WHERE k.hash = ANY (?::bytea[])`, []any{list},
		func(row sqlstore.Scanner) error {
			k, err := sqlstore.ScanKey(row)
			found[k.Hash] = k
			return err
		})
	return found, err
}

// TouchKey implements server.Keyring.
func (a *accounts) TouchKey(ctx context.Context, id int64, at time.Time) error {
	return a.edit(ctx, "note use of key", `UPDATE keys SET used = greatest(used, $1) WHERE id = $2`,
		sqlstore.Micros(at), id)
}

// AddKey implements server.Accounts.
func (a *accounts) AddKey(ctx context.Context, k server.Key) error {
	err := a.store.once(ctx, func(tx pgx.Tx) error {
		if err := sqlstore.CheckKeys(ctx, dialect{tx}, k.User.ID, k); err != nil {
			return err
		}
		return editPg(ctx, tx, `
INSERT INTO keys ("user", name, hash, created, made_by) SELECT id, $1, $2, $3, $4 FROM users WHERE id = $5`,
			sqlstore.CleanText(k.Name), k.Hash[:], sqlstore.Micros(k.Created), k.By, k.User.ID)
	})
	if err != nil {
		return fmt.Errorf("add key %q: %w", k.Name, err)
	}
	return nil
}

// RevokeKey implements server.Accounts.
func (a *accounts) RevokeKey(ctx context.Context, name string, at time.Time) error {
	err := a.store.once(ctx, func(tx pgx.Tx) error {
		done, err := tx.Exec(ctx, sqlstore.RevokeKeys, sqlstore.Micros(at), sqlstore.CleanText(name))
		if err == nil && done.RowsAffected() == 0 {
			err = server.ErrNotFound
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("revoke key %q: %w", name, err)
	}
	return nil
}

// RotateKey implements server.Accounts. The old hash stays under the name with the time until which it is valid.
func (a *accounts) RotateKey(ctx context.Context, next server.Key, grace time.Time) error {
	name := sqlstore.CleanText(next.Name)
	err := a.store.once(ctx, func(tx pgx.Tx) error {
		k, err := sqlstore.ScanKey(tx.QueryRow(ctx, sqlstore.SelectKey+
			`WHERE k.name = $1 AND (k.revoked = 0 OR k.revoked > $2) FOR UPDATE OF k`, name, sqlstore.Micros(next.Created)))
		if err != nil {
			return translate(err)
		}
		if err := sqlstore.CheckKeys(ctx, dialect{tx}, k.User.ID, next); err != nil {
			return err
		}
		until := grace
		if !k.Revoked.IsZero() && k.Revoked.Before(grace) {
			until = k.Revoked
		}
		err = editPg(ctx, tx, `UPDATE keys SET name = $1, revoked = $2 WHERE id = $3`,
			sqlstore.RotatedName(name, k.ID, until), sqlstore.Micros(until), k.ID)
		if err != nil {
			return err
		}
		return editPg(ctx, tx, `INSERT INTO keys ("user", name, hash, created, made_by, chain)
VALUES ($1, $2, $3, $4, $5, $6)`, k.User.ID, name, next.Hash[:], sqlstore.Micros(next.Created), next.By,
			cmp.Or(k.Chain, k.ID))
	})
	if err != nil {
		return fmt.Errorf("rotate key %q: %w", name, err)
	}
	return nil
}

// AddLogin implements server.Accounts.
func (a *accounts) AddLogin(ctx context.Context, token [32]byte, l server.Login) error {
	err := a.store.once(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM logins WHERE until < $1`,
			sqlstore.Micros(l.Until.Add(-sqlstore.LongOver))); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM logins WHERE "user" = $1 AND token NOT IN
  (SELECT token FROM logins WHERE "user" = $1 ORDER BY until DESC LIMIT $2)`, l.User.ID,
			sqlstore.MaxLogins-1); err != nil {
			return err
		}
		return editPg(ctx, tx, `
INSERT INTO logins (token, "user", key, until) SELECT $1, id, $2, $3 FROM users WHERE id = $4`,
			token[:], l.Key, sqlstore.Micros(l.Until), l.User.ID)
	})
	if err != nil {
		return fmt.Errorf("add login: %w", err)
	}
	return nil
}

// RemoveLogin implements server.Accounts.
func (a *accounts) RemoveLogin(ctx context.Context, token [32]byte) error {
	return a.edit(ctx, "end login", `DELETE FROM logins WHERE token = $1`, token[:])
}

// AddTicket implements server.Accounts.
func (a *accounts) AddTicket(ctx context.Context, ticket [32]byte, user int64, until time.Time) error {
	err := a.store.once(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM tickets WHERE until < $1`,
			sqlstore.Micros(until.Add(-sqlstore.LongOver))); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM tickets WHERE "user" = $1 AND ticket NOT IN
  (SELECT ticket FROM tickets WHERE "user" = $1 ORDER BY until DESC LIMIT $2)`, user,
			sqlstore.MaxTickets-1); err != nil {
			return err
		}
		return editPg(ctx, tx, `INSERT INTO tickets (ticket, "user", until) SELECT $1, id, $2 FROM users WHERE id = $3`,
			ticket[:], sqlstore.Micros(until), user)
	})
	if err != nil {
		return fmt.Errorf("add one-time link: %w", err)
	}
	return nil
}

// TakeTicket implements server.Accounts. Of several who take one at once, on whatever server, one gets it. When the
// answer to the commit is lost, nobody does.
func (a *accounts) TakeTicket(ctx context.Context, ticket [32]byte, now time.Time) (server.User, error) {
	var r sqlstore.UserRow
	var found error
	err := a.store.once(ctx, func(tx pgx.Tx) error {
		found = tx.QueryRow(ctx, `
WITH taken AS (DELETE FROM tickets WHERE ticket = $1 RETURNING "user", until)
`+sqlstore.SelectUser+`FROM taken t JOIN users u ON u.id = t."user" WHERE t.until > $2 AND u.disabled = 0`,
			ticket[:], sqlstore.Micros(now)).Scan(r.Columns()...)
		if errors.Is(found, pgx.ErrNoRows) {
			return nil // used up all the same
		}
		return found
	})
	if err := errors.Join(translate(found), err); err != nil {
		return server.User{}, fmt.Errorf("use one-time link: %w", err)
	}
	return r.User(), nil
}
