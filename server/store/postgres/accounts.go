package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

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

// FindKey implements server.Keyring. Every request asks for one: those of a crowd share a statement.
func (s *Store) FindKey(ctx context.Context, hash [32]byte) (server.Key, error) {
	k, ok, err := s.keys.Find(ctx, hash)
	if err == nil && !ok {
		err = server.ErrNotFound
	}
	return k, sqlstore.Wrap(err, "find key")
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
