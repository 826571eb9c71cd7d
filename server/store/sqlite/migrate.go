package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/ccship/ccship/server/store/sqlstore"
)

//go:embed migrations/*.sql
var sqliteMigrations embed.FS

// migrate brings the schema up to date. Two processes may want to at once (serve and key create on a fresh path): they
// take turns, for a step that runs twice fails, or changes its rows twice.
func migrate(ctx context.Context, db *sql.DB, path string, how sqlstore.Opening) error {
	p, err := provider(db)
	if err != nil {
		return err
	}
	for {
		if done, err := settled(ctx, p, how); done || how.AsIs {
			return err // else it may be of a file that is being made right now
		}
		t, err := takeTurn(ctx, path)
		if errors.Is(err, errTurnOver) {
			continue // who had it before has done everything
		}
		if err != nil {
			return err
		}
		if err := upgrade(ctx, p, how); err != nil {
			return errors.Join(err, t.end(false))
		}
		return t.end(true)
	}
}

// settled reports whether there is nothing to do, or nothing that can be done. A database whose version
// can't be read is not settled.
func settled(ctx context.Context, p *goose.Provider, how sqlstore.Opening) (bool, error) {
	have, want, err := p.GetVersions(ctx)
	switch {
	case err != nil:
		return false, fmt.Errorf("read schema version: %w", err)
	case have == want:
		return true, nil
	case have > want:
		return true, fmt.Errorf("schema %d, this program knows %d: %w", have, want, sqlstore.ErrNewer)
	case how.AsIs:
		return true, fmt.Errorf("schema %d, this program wants %d: %w", have, want, sqlstore.ErrOutdated)
	}
	return false, nil
}

// upgrade runs the steps that are missing. It must have the turn.
func upgrade(ctx context.Context, p *goose.Provider, how sqlstore.Opening) error {
	if done, err := settled(ctx, p, how); done || err != nil {
		return err
	}
	have, want, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	how.Migrating(have, want)
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate schema: %w", err)
	}
	return nil
}

// Version returns the schema's version.
func (s *Store) Version(ctx context.Context) (int64, error) {
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

func provider(db *sql.DB) (*goose.Provider, error) {
	dir, err := fs.Sub(sqliteMigrations, "migrations")
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
	names, err := fs.Glob(sqliteMigrations, "migrations/*.sql")
	if err != nil {
		return 0, err
	}
	return int64(len(names)), nil
}
