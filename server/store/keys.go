package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
)

const selectKey = `SELECT id, name, hash, created, used, revoked FROM keys `

func scanKey(row scanner) (server.Key, error) {
	var k server.Key
	var hash []byte
	var created, used, revoked int64
	if err := row.Scan(&k.ID, &k.Name, &hash, &created, &used, &revoked); err != nil {
		return k, err
	}
	copy(k.Hash[:], hash)
	k.Created, k.Used, k.Revoked = moment(created), moment(used), moment(revoked)
	return k, nil
}

// moment turns stored microseconds into a time; 0 is the zero time.
func moment(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// FindKey implements server.Keyring.
func (s *SQLite) FindKey(ctx context.Context, hash [32]byte) (server.Key, error) {
	k, err := scanKey(s.read.QueryRowContext(ctx, selectKey+`WHERE hash = ?`, hash[:]))
	if errors.Is(err, sql.ErrNoRows) {
		return k, fmt.Errorf("key: %w", server.ErrNotFound)
	}
	if err != nil {
		return k, fmt.Errorf("find key: %w", err)
	}
	return k, nil
}

// TouchKey implements server.Keyring.
func (s *SQLite) TouchKey(ctx context.Context, id int64, at time.Time) error {
	err := s.withWriter(ctx, func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, `UPDATE keys SET used = max(used, ?) WHERE id = ?`, at.UnixMicro(), id)
		return err
	})
	if err != nil {
		return fmt.Errorf("note use of key: %w", err)
	}
	return nil
}

// AddKey stores the hash of a new key. server.ErrExists when the name is in use, by a revoked key too.
func (s *SQLite) AddKey(ctx context.Context, name string, hash [32]byte, at time.Time) error {
	err := s.withWriter(ctx, func(c *sql.Conn) error {
		res, err := c.ExecContext(ctx, `INSERT INTO keys (name, hash, created) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
			name, hash[:], at.UnixMicro())
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 1 {
			return err
		}
		return server.ErrExists
	})
	if err != nil {
		return fmt.Errorf("add key %q: %w", name, err)
	}
	return nil
}

// Keys lists all keys, the oldest first.
func (s *SQLite) Keys(ctx context.Context) ([]server.Key, error) {
	rows, err := s.read.QueryContext(ctx, selectKey+`ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	defer rows.Close()
	var out []server.Key
	for rows.Next() {
		k, err := scanKey(rows)
		if err != nil {
			return nil, fmt.Errorf("list keys: %w", err)
		}
		out = append(out, k)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return out, nil
}

// RevokeKey makes a key invalid for good. Again changes nothing; server.ErrNotFound for a name nobody has.
func (s *SQLite) RevokeKey(ctx context.Context, name string, at time.Time) error {
	err := s.withWriter(ctx, func(c *sql.Conn) error {
		res, err := c.ExecContext(ctx,
			`UPDATE keys SET revoked = CASE revoked WHEN 0 THEN ? ELSE revoked END WHERE name = ?`, at.UnixMicro(), name)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 1 {
			return err
		}
		return server.ErrNotFound
	})
	if err != nil {
		return fmt.Errorf("revoke key %q: %w", name, err)
	}
	return nil
}
