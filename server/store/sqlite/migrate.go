package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"

	"github.com/pressly/goose/v3"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// schema makes a database. It is edited in place until version 1.0, see sqlstore.SchemaSum.
//
//go:embed schema.sql
var schema string

// migrate makes the schema of a new database, and refuses one that another build made. Two processes may want to at
// once (serve and key create on a fresh path): the one that comes second finds it made.
func migrate(ctx context.Context, db *sql.DB, how sqlstore.Opening) error {
	p, err := provider(db)
	if err != nil {
		return err
	}
	if done, err := settled(ctx, db, p, how); done || how.AsIs {
		return err // else it may be of a file that is being made right now
	}
	_, err = p.Up(ctx)
	done, now := settled(ctx, db, p, how)
	if done {
		return now
	}
	return fmt.Errorf("make schema: %w", errors.Join(err, now))
}

// settled reports whether there is nothing to do, or nothing that can be done. A database whose version can't be read
// is not settled.
func settled(ctx context.Context, db *sql.DB, p *goose.Provider, how sqlstore.Opening) (bool, error) {
	have, want, err := p.GetVersions(ctx)
	if err != nil {
		return false, fmt.Errorf("read schema version: %w", err)
	}
	if have > 0 {
		err = sameSchema(ctx, db)
	}
	switch {
	case err != nil:
		return true, err
	case have > want:
		return true, fmt.Errorf("schema %d, this program knows %d: %w", have, want, sqlstore.ErrNewer)
	case have < want && how.AsIs:
		return true, sqlstore.ErrOutdated
	}
	return have == want, nil
}

// sameSchema is ErrOtherBuild unless this build's text made the database.
func sameSchema(ctx context.Context, db *sql.DB) error {
	var known bool
	err := db.QueryRowContext(ctx,
		`SELECT EXISTS (SELECT 1 FROM pragma_table_info('store_identity') WHERE name = 'schema')`).
		Scan(&known)
	sum := ""
	if err == nil && known {
		err = db.QueryRowContext(ctx, `SELECT schema FROM store_identity`).Scan(&sum)
	}
	if err != nil {
		return fmt.Errorf("read which schema it is: %w", err)
	}
	if sum != sqlstore.SchemaSum(schema) {
		return sqlstore.ErrOtherBuild
	}
	return nil
}

// provider applies the schema as version 1, in one transaction.
func provider(db *sql.DB) (*goose.Provider, error) {
	first := goose.NewGoMigration(1, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, schema); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE store_identity SET schema = ?`, sqlstore.SchemaSum(schema))
		return err
	}}, nil)
	p, err := goose.NewProvider(goose.DialectSQLite3, db, nil, goose.WithGoMigrations(first),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	return p, sqlstore.Wrap(err, "read the schema")
}
