package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// oldestPostgres is the oldest release that is tested and still maintained.
const oldestPostgres = 140000

// prepare brings the schema up to date and looks for what the database lacks. Servers that start at once take turns.
// Where there is nothing to do it changes nothing and waits for nobody.
func (s *Store) prepare(ctx context.Context, config *pgx.ConnConfig, how sqlstore.Opening) (err error) {
	db := stdlib.OpenDB(*Configure(config))
	defer db.Close()
	if err := pgFit(ctx, db); err != nil {
		return err
	}
	m, err := New(db, s.pooled, how)
	if err != nil {
		return err
	}
	settled, err := m.Settled(ctx)
	if err != nil {
		return err
	}
	if !settled && how.AsIs {
		return sqlstore.ErrOutdated
	}
	if !settled {
		turn, err := m.Turn(ctx)
		if err != nil {
			return err
		}
		defer turn.Close() // and with it the turn, for the connection ends with db
		if err := m.Run(ctx); err != nil {
			return err
		}
	}
	notes, err := s.lacks(ctx, db)
	s.notes = append(s.notes, notes...)
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
