package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

const (
	// pageSize suits transcript lines, which are mostly between 1 and 10 KiB: with the default of 4 KiB nearly
	// every row would spill to overflow pages. It is fixed when the database is created.
	pageSize = 8 << 10
	// readers is how many connections read at once. Two of them are never a snapshot's, so that slow downloads do
	// not keep keys from being checked.
	readers   = 10
	snapshots = readers - 2
	// busyTimeout in milliseconds: another process (key create) holds the write lock for far less.
	busyTimeout = 10_000
)

// SQLite is a store in one file. Safe for concurrent use; one process should serve from it, others may open it to
// manage keys.
type SQLite struct {
	path string
	read *sql.DB
	open *places // of snapshots
	// write has one connection, conn, held from Open to Close. conn and stmts belong to the goroutine that has put a
	// token into lead, which has room for one.
	write *sql.DB
	conn  *sql.Conn
	stmts statements
	queue
	artifacts
	people
	changes changes

	ingesting atomic.Int64 // Puts that are under way
	ingested  atomic.Int64 // when the last one ended, Unix nanoseconds
	derived   pace
}

// OpenSQLite opens or creates the database at path: the file 0600, a directory that is missing 0700.
func OpenSQLite(ctx context.Context, path string) (*SQLite, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("resolve store path: %w", err)
	}
	if err := createFile(path); err != nil {
		return nil, err
	}
	s := &SQLite{path: path, queue: newQueue(1), open: newPlaces(snapshots)}
	if err := s.connect(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", path, err), s.Close())
	}
	return s, nil
}

func (s *SQLite) connect(ctx context.Context) (err error) {
	if s.write, err = sql.Open("sqlite", dsn(s.path, false)); err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	if err := migrate(ctx, s.write); err != nil {
		return err
	}
	if s.conn, err = s.write.Conn(ctx); err != nil {
		return err
	}
	if s.stmts, err = prepare(ctx, s.conn); err != nil {
		return err
	}
	if s.read, err = sql.Open("sqlite", dsn(s.path, true)); err != nil {
		return err
	}
	s.read.SetMaxOpenConns(readers)
	s.read.SetMaxIdleConns(readers)
	ledgers, err := openLedgers(ctx, sqliteDialect{s.read})
	if err != nil {
		return err
	}
	s.people = people{sqliteDialect{s.read}}
	s.artifacts = artifacts{reader: sqliteDialect{s.read}, ledgers: &ledgers, writer: s.writeArtifacts,
		notify: s.changes.tell}
	return nil
}

// writeArtifacts runs fn in a transaction.
func (s *SQLite) writeArtifacts(ctx context.Context, fn func(dialect) error) error {
	return s.withWriter(ctx, func(c *sql.Conn) error { return fn(sqliteDialect{c}) })
}

// createFile makes the file before SQLite does, which would give it the umask's mode; its WAL copies the mode.
func createFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("create store directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("create store: %w", err)
	}
	// Closing drops this process's POSIX locks on the file, so it must happen before SQLite has any.
	if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
		return fmt.Errorf("create store: %w", err)
	}
	return nil
}

// dsn names the database for the driver. page_size works only before the first page is written, which switching to
// WAL does; the driver runs the _pragma values in alphabetical order, and _journal_mode after all of them.
func dsn(path string, readOnly bool) string {
	q := []string{fmt.Sprintf("_busy_timeout=%d", busyTimeout)}
	if readOnly {
		q = append(q, "_query_only=1", "_pragma=cache_size(-8192)")
	} else {
		q = append(q,
			fmt.Sprintf("_pragma=page_size(%d)", pageSize),
			"_pragma=wal_autocheckpoint(2000)",
			"_pragma=journal_size_limit(67108864)",
			"_pragma=cache_size(-16384)",
			"_pragma=secure_delete(FAST)", // what is deleted is overwritten where that costs no page more
			"_journal_mode=WAL",
			"_synchronous=FULL",
		)
	}
	return "file:" + uriPath(path) + "?" + strings.Join(q, "&")
}

// uriPath is a file's path as part of a URI.
func uriPath(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a Windows drive
	}
	return (&url.URL{Path: path}).EscapedPath()
}

// Close closes the database. Puts and snapshots must be over.
func (s *SQLite) Close() error {
	var errs []error
	if s.read != nil {
		errs = append(errs, s.read.Close())
	}
	if s.conn != nil {
		errs = append(errs, s.stmts.close(), s.conn.Close())
	}
	if s.write != nil {
		errs = append(errs, s.write.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// Path is where the database is, absolute.
func (s *SQLite) Path() string { return s.path }
