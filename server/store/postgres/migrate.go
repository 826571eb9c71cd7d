package postgres

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// schema makes a database. It is edited in place until version 1.0 of the program, see sqlstore.SchemaSum.
//
//go:embed schema.sql
var schema string

const (
	// oldestPostgres is the oldest release that is tested and still maintained.
	oldestPostgres = 140000
	// lockSchema is the class of the advisory lock of who makes the schema.
	lockSchema = 0x6363_0000
	// turnLook is about the time between two looks whether another server that makes the schema is done.
	turnLook = 200 * time.Millisecond
	// nameServer is the name of every connection of a server.
	nameServer = "ccship-server"

	// Codes of PostgreSQL for what the schema does not have.
	undefinedTable  = "42P01"
	undefinedColumn = "42703"
)

// prepare makes the schema of a new database and looks for what the database lacks. Servers that start at once take
// turns. Where there is nothing to do it changes nothing and waits for nobody.
func (s *Store) prepare(ctx context.Context, config *pgx.ConnConfig, how sqlstore.Opening) (err error) {
	config = config.Copy()
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		_, err := conn.Exec(ctx, `SET statement_timeout = 0`).ReadAll()
		return err
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	if err := pgFit(ctx, db); err != nil {
		return err
	}
	made, err := settled(ctx, db)
	switch {
	case err != nil:
		return err
	case !made && how.AsIs:
		return sqlstore.ErrOutdated
	case !made:
		err = makeSchema(ctx, db, how)
		if err == nil { // another build may have made it meanwhile
			_, err = settled(ctx, db)
		}
	}
	if err != nil {
		return err
	}
	notes, err := s.lacks(ctx, db)
	s.notes = append(s.notes, notes...)
	return err
}

// settled reports whether a database has the schema. It only reads. That of a newer program, or of another build, is
// an error.
func settled(ctx context.Context, db *sql.DB) (bool, error) {
	var made bool
	err := db.QueryRowContext(ctx, `SELECT to_regclass('goose_db_version') IS NOT NULL`).Scan(&made)
	if err != nil || !made {
		return false, err
	}
	p, err := provider(db)
	if err != nil {
		return false, err
	}
	have, want, err := p.GetVersions(ctx)
	if err != nil {
		return false, fmt.Errorf("read schema version: %w", err)
	}
	if have > 0 {
		err = sameSchema(ctx, db)
	}
	if err == nil && have > want {
		err = fmt.Errorf("schema %d, this program knows %d: %w", have, want, sqlstore.ErrNewer)
	}
	return have == want, err
}

// sameSchema is ErrOtherBuild unless this build's text made the database.
func sameSchema(ctx context.Context, db *sql.DB) error {
	var sum string
	err := db.QueryRowContext(ctx, `SELECT schema FROM store_identity`).Scan(&sum)
	p, refused := errors.AsType[*pgconn.PgError](err)
	switch {
	case refused && (p.Code == undefinedTable || p.Code == undefinedColumn),
		err == nil && sum != sqlstore.SchemaSum(schema):
		return sqlstore.ErrOtherBuild
	case err != nil:
		return fmt.Errorf("read which schema it is: %w", err)
	}
	return nil
}

// makeSchema makes the schema once no other server does.
func makeSchema(ctx context.Context, db *sql.DB, how sqlstore.Opening) error {
	turn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer turn.Close() // and with it the turn, for the connection ends with db
	free := false
	for {
		err := turn.QueryRowContext(ctx, `SELECT pg_try_advisory_lock($1, 0)`, lockSchema).Scan(&free)
		if free && err == nil {
			break
		}
		if err == nil {
			how.Tell("another server updates the schema")
			err = pause(ctx, turnLook/2+rand.N(turnLook))
		}
		if err != nil {
			return fmt.Errorf("wait for another server that makes the schema: %w", err)
		}
	}
	p, err := provider(db)
	if err == nil {
		_, err = p.Up(ctx)
	}
	return sqlstore.Wrap(err, "make schema")
}

// pause waits for d, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// provider applies the schema as version 1, in one transaction.
func provider(db *sql.DB) (*goose.Provider, error) {
	first := goose.NewGoMigration(1, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, schema); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE store_identity SET schema = $1`, sqlstore.SchemaSum(schema))
		return err
	}}, nil)
	p, err := goose.NewProvider(goose.DialectPostgres, db, nil, goose.WithGoMigrations(first),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	return p, sqlstore.Wrap(err, "read the schema")
}

// pgFit refuses databases that can't hold what is sent.
func pgFit(ctx context.Context, db *sql.DB) error {
	var encoding string
	var version int
	err := db.QueryRowContext(ctx,
		`SELECT current_setting('server_encoding'), current_setting('server_version_num')::int`).Scan(&encoding, &version)
	switch {
	case err != nil:
		return fmt.Errorf("connect: %w", err)
	case version < oldestPostgres:
		return errTooOld
	case encoding != "UTF8":
		return errEncoding
	}
	return nil
}

// lacks looks for what works less well than it could, or less safely.
func (s *Store) lacks(ctx context.Context, db *sql.DB) (notes []string, err error) {
	var fsync, pages string
	err = db.QueryRowContext(ctx, `SELECT current_setting('fsync'), current_setting('full_page_writes')`).
		Scan(&fsync, &pages)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	if fsync == "off" || pages == "off" {
		notes = append(notes,
			"PostgreSQL runs with fsync or full_page_writes off: a crash can lose lines that were acknowledged")
	}
	return notes, nil
}
