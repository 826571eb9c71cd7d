package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/postgres/*.sql
var postgresMigrations embed.FS

// oldestPostgres is the oldest release that is tested and still maintained.
const oldestPostgres = 140000

var (
	errEncoding = errors.New("its encoding is not UTF8")
	errTooOld   = errors.New("is older than 14")
)

// prepare brings the schema up to date and looks for what the database lacks. Servers that start at once take turns.
func (s *Postgres) prepare(ctx context.Context, config *pgx.ConnConfig) (err error) {
	patient := config.Copy()
	patient.AfterConnect = nil // without time limits: a migration may rewrite a table
	db := stdlib.OpenDB(*patient)
	defer db.Close()
	if err := pgFit(ctx, db); err != nil {
		return err
	}
	turn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer turn.Close() // and with it the turn, for the connection ends with db
	if _, err := turn.ExecContext(ctx, `SELECT pg_advisory_lock($1, 0)`, lockSchema); err != nil {
		return fmt.Errorf("wait for another server that migrates: %w", err)
	}
	if err := pgMigrate(ctx, db); err != nil {
		return err
	}
	if s.trigrams, err = pgIndexTexts(ctx, db); err != nil {
		return err
	}
	s.notes, err = s.lacks(ctx, db)
	return err
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

func pgMigrate(ctx context.Context, db *sql.DB) error {
	dir, err := fs.Sub(postgresMigrations, "migrations/postgres")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, dir,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	have, want, err := p.GetVersions(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("read schema version: %w", err)
	case have > want:
		return fmt.Errorf("schema %d, this program knows %d: %w", have, want, ErrNewer)
	case have == want:
		return nil
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate schema: %w", err)
	}
	return nil
}

// lacks looks for what works less well than it could, or less safely.
func (s *Postgres) lacks(ctx context.Context, db *sql.DB) (notes []string, err error) {
	var fsync, pages, ctype string
	err = db.QueryRowContext(ctx, `
SELECT current_setting('fsync'), current_setting('full_page_writes'),
  (SELECT datctype FROM pg_database WHERE datname = current_database())`).Scan(&fsync, &pages, &ctype)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	if fsync == "off" || pages == "off" {
		notes = append(notes,
			"PostgreSQL runs with fsync or full_page_writes off: a crash can lose lines that were acknowledged")
	}
	if !s.trigrams {
		notes = append(notes, "PostgreSQL lacks the extension pg_trgm: words are found from their beginning on only")
	}
	if ctype == "C" || ctype == "POSIX" {
		notes = append(notes, "the database's LC_CTYPE is C: searching text that is not ASCII is slow")
	}
	return notes, nil
}
