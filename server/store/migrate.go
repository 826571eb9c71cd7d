package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/sqlite/*.sql
var sqliteMigrations embed.FS

// ErrNewer means that a newer version of this program made the schema.
var ErrNewer = errors.New("written by a newer ccship-server; upgrade this one")

// migrate brings the schema up to date. Two processes may do so at once (serve and key create on a fresh path): the
// second fails on what the first has made, and finds it complete on the next try.
func migrate(ctx context.Context, db *sql.DB) error {
	p, err := sqliteProvider(db)
	if err != nil {
		return err
	}
	var failed error
	for range 3 {
		have, want, err := p.GetVersions(ctx)
		if err == nil && have > want {
			return fmt.Errorf("schema %d, this program knows %d: %w", have, want, ErrNewer)
		}
		if err == nil && have == want {
			return nil
		}
		if _, failed = p.Up(ctx); failed == nil {
			return nil
		}
	}
	return fmt.Errorf("migrate schema: %w", failed)
}

// Version returns the schema's version.
func (s *SQLite) Version(ctx context.Context) (int64, error) {
	conn, err := s.read.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	var v int64
	err = conn.QueryRowContext(ctx, `SELECT max(version_id) FROM goose_db_version WHERE is_applied`).Scan(&v)
	if err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	return v, nil
}

func sqliteProvider(db *sql.DB) (*goose.Provider, error) {
	dir, err := fs.Sub(sqliteMigrations, "migrations/sqlite")
	if err != nil {
		return nil, err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, dir,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return p, nil
}

// latestSQLite is the version of the schema that this program makes.
func latestSQLite() (int64, error) {
	names, err := fs.Glob(sqliteMigrations, "migrations/sqlite/*.sql")
	if err != nil {
		return 0, err
	}
	return int64(len(names)), nil
}
