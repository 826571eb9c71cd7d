package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// schema makes a database: it is version 1, and is edited in place until version 1.0 of the program, see
// sqlstore.SchemaSum.
//
//go:embed schema.sql
var schema string

// later are the migrations from version 2 on. There are none before version 1.0 of the program.
var later embed.FS

// lockSchema is the class of the advisory locks of who changes the schema.
const lockSchema = 0x6363_0000

// Codes of PostgreSQL: for a lock that was not had within lock_timeout, and for what the schema does not have.
const (
	lockNotAvailable = "55P03"
	undefinedTable   = "42P01"
	undefinedColumn  = "42703"
)

const (
	// lockPatience is how long a migration waits for the lock on a table. Others that use the table meanwhile wait behind
	// it, so it gives up soon, lets them pass, and tries again. It may run for as long as it likes once it has its locks:
	// it moves no rows while it holds one.
	lockPatience = 2 * time.Second
	// olderLook is the time between two looks for servers of older versions.
	olderLook = time.Second
	// turnLook is about the time between two looks whether another server that changes the schema is done.
	turnLook = 200 * time.Millisecond
	// besideMark in a migration's file says that servers of the version before go on along with what it makes.
	besideMark = "-- beside: yes"

	// nameServer is the name of every connection of a server but those named below.
	nameServer   = "ccship-server"
	nameServing  = "ccship-server, schema " // with the schema's number: the one on which a server listens
	namePrepares = "ccship-server, preparing"
)

// servingName tells other servers, in pg_stat_activity, which schema a server that listens works with.
func servingName() string { return nameServing + strconv.FormatInt(latest(), 10) }

// latest returns the version of the schema that this program makes.
func latest() int64 {
	v := int64(1)
	names, _ := fs.Glob(later, "*.sql")
	for _, name := range names {
		v = max(v, versionOf(name))
	}
	return v
}

// versionOf returns the number with which the name of a migration's file begins.
func versionOf(path string) int64 {
	digits, _, _ := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], "_")
	v, _ := strconv.ParseInt(digits, 10, 64)
	return v
}

// Configure answers a configuration for what changes the schema.
func Configure(config *pgx.ConnConfig) *pgx.ConnConfig {
	c := config.Copy()
	c.RuntimeParams["application_name"] = namePrepares
	c.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		limits := fmt.Sprintf(`SET statement_timeout = 0; SET lock_timeout = %d`, lockPatience.Milliseconds())
		_, err := conn.Exec(ctx, limits).ReadAll()
		return err
	}
	return c
}

// migration brings a schema up to date.
type migration struct {
	db     *sql.DB
	files  fs.FS
	goose  *goose.Provider
	how    sqlstore.Opening
	pooled bool
}

// New returns a migration to the newest schema. pooled says that servers reach the database through a pooler.
func New(db *sql.DB, pooled bool, how sqlstore.Opening) (*migration, error) {
	return of(db, later, pooled, how)
}

// of returns a migration to what files make of the schema.
func of(db *sql.DB, files fs.FS, pooled bool, how sqlstore.Opening) (*migration, error) {
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithGoMigrations(first()),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return &migration{db, files, p, how, pooled}, nil
}

// first is version 1: the schema, in one transaction.
func first() *goose.Migration {
	return goose.NewGoMigration(1, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, schema); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE store_identity SET schema = $1`, sqlstore.SchemaSum(schema))
		return err
	}}, nil)
}

// Settled says that there is nothing to do. It only reads.
func (m *migration) Settled(ctx context.Context) (bool, error) {
	var made bool
	err := m.db.QueryRowContext(ctx, `SELECT to_regclass('goose_db_version') IS NOT NULL`).Scan(&made)
	if err != nil || !made {
		return false, err
	}
	have, want, err := m.versions(ctx)
	return have == want, err
}

// versions returns those that the schema has and is to have. A schema of a newer program, or of another build, is an
// error.
func (m *migration) versions(ctx context.Context) (have, want int64, err error) {
	have, want, err = m.goose.GetVersions(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("read schema version: %w", err)
	}
	if have > 0 {
		err = m.sameSchema(ctx)
	}
	if err == nil && have > want {
		err = fmt.Errorf("schema %d, this program knows %d: %w", have, want, sqlstore.ErrNewer)
	}
	return have, want, err
}

// sameSchema is ErrOtherBuild unless this build's text made the database.
func (m *migration) sameSchema(ctx context.Context) error {
	var sum string
	err := m.db.QueryRowContext(ctx, `SELECT schema FROM store_identity`).Scan(&sum)
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

// Turn waits until no other server prepares the database. The turn ends with the connection. It asks again and again: a
// statement that waits has a snapshot, and an index that the other builds concurrently waits for every snapshot.
func (m *migration) Turn(ctx context.Context) (*sql.Conn, error) {
	conn, err := m.db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	for told := false; ; told = true {
		var free bool
		err := conn.QueryRowContext(ctx, `SELECT pg_try_advisory_lock($1, 0)`, lockSchema).Scan(&free)
		if err == nil && free {
			return conn, nil
		}
		if err == nil && !told {
			m.how.Tell("another server updates the schema")
		}
		if err == nil {
			err = pause(ctx, turnLook/2+rand.N(turnLook))
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("wait for another server that migrates: %w", err), conn.Close())
		}
	}
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

// Run brings the schema up to date, once that harms no server that is running. It is tried again for as long as others
// hold a lock on what it changes; between two tries they go on.
func (m *migration) Run(ctx context.Context) error {
	have, want, err := m.versions(ctx)
	if err != nil || have == want {
		return err
	}
	if err := m.awaitOlder(ctx, have, want); err != nil {
		return err
	}
	m.how.Migrating(have, want)
	for {
		_, err := m.goose.UpTo(ctx, want)
		p, refused := errors.AsType[*pgconn.PgError](err)
		switch {
		case err == nil:
			return nil
		case !refused || p.Code != lockNotAvailable:
			return fmt.Errorf("migrate schema: %w", err)
		}
		m.how.Tell("the update of the schema waits until a table is free; it tries again")
		if pause(ctx, lockPatience/2+rand.N(lockPatience)) != nil {
			return fmt.Errorf("migrate schema: %w", err)
		}
	}
}

// awaitOlder waits until there is no server that what is to be made would break, or fails while there is one.
func (m *migration) awaitOlder(ctx context.Context, have, want int64) error {
	breaks, err := m.breaks(have, want)
	if err != nil || !breaks {
		return err
	}
	for {
		older, err := m.older(ctx)
		switch {
		case err != nil || older == "":
			return err
		case !m.how.Wait:
			return fmt.Errorf("%w (database sessions %s)", sqlstore.ErrOlderServes, older)
		}
		m.how.Tell("the schema is updated once servers of an older version have stopped (database sessions %s)", older)
		if err := pause(ctx, olderLook); err != nil {
			return err
		}
	}
}

// breaks says whether one of the migrations from one version to another may break servers of the first.
func (m *migration) breaks(have, want int64) (bool, error) {
	names, err := fs.Glob(m.files, "*.sql")
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if v := versionOf(name); have == 0 || v <= have || v > want {
			continue
		}
		text, err := fs.ReadFile(m.files, name)
		if err != nil {
			return false, err
		}
		if !strings.Contains(string(text), besideMark) {
			return true, nil
		}
	}
	return false, nil
}

// older lists the database's sessions of servers that know the schema as it is: this one has none before it is updated.
// The first versions did not say what they know; behind a pooler theirs can't be distinguished from what the pooler
// kept.
func (m *migration) older(ctx context.Context) (pids string, err error) {
	first := nameServer
	if m.pooled {
		first = nameServing
	}
	err = m.db.QueryRowContext(ctx, `SELECT coalesce(string_agg(pid::text, ', ' ORDER BY pid), '') FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
  AND (starts_with(application_name, $1) OR application_name = $2)`,
		nameServing, first).Scan(&pids)
	if err != nil {
		return "", fmt.Errorf("look for older servers: %w", err)
	}
	return pids, nil
}
