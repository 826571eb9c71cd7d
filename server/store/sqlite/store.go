// Package sqlite is a store in one file. One goroutine writes at a time, in groups of batches; readers see one moment
// of the database each. It also has the backup of such a file and its restore.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/search"
	"github.com/ccship/ccship/server/store/sqlstore"
)

const (
	// pageSize suits transcript lines, which are mostly between 1 and 10 KiB: with the default of 4 KiB nearly
	// every row would spill to overflow pages. It is fixed when the database is created.
	pageSize = 8 << 10
	// readers is how many connections read at once. Two of them are never a snapshot's, so that slow downloads do
	// not keep keys from being checked.
	readers   = 10
	snapshots = readers - 2
	// keptByWriter and keptByReader are how many compiled statements a connection keeps.
	keptByWriter, keptByReader = 112, 48
	// readerIdle is how long a reader that is not used keeps its pages and statements in memory. The one used last is used
	// first, so that few stay where one at a time is enough.
	readerIdle = time.Minute
	// busyTimeout in milliseconds: another process (key create) holds the write lock for far less.
	busyTimeout = 10_000
)

// Store is a store in one file. Safe for concurrent use; one process should serve from it, others may open it to
// manage keys.
type Store struct {
	path string
	file os.FileInfo // of the database, as it was opened
	read *sql.DB
	open *sqlstore.SnapshotSlots // of snapshots
	// write has one connection, conn, held from Open to Close. conn and writer belong to the goroutine that has put a
	// token into lead, which has space for one.
	write  *sql.DB
	conn   *sql.Conn
	writer writer
	queue  lines.Queue
	log    *checkpoints
	lines  *lines.Lines
	*lines.Sealer
	*lines.Tier
	sqlstore.Artifacts
	sqlstore.Finder
	repositories sqlstore.Repositories
	*sqlstore.Sums
	sqlstore.Keeper
	lines.Policy
	sqlstore.People
	lines.Masks
	changes sqlstore.Changes
	*search.Index

	ingesting atomic.Int64 // Puts that are under way
	ingested  atomic.Int64 // when the last one ended, Unix nanoseconds
	derived   pace
	packing   pace
	numbers   numbers
}

// Open opens or creates the database at path: the file 0600, a directory that is missing 0700.
func Open(ctx context.Context, path string, how sqlstore.Opening) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("resolve store path: %w", err)
	}
	if err := createFile(path); err != nil {
		return nil, err
	}
	s := &Store{path: path, queue: lines.NewQueue(1), open: sqlstore.NewSnapshotSlots(snapshots)}
	if err := s.connect(ctx, how); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", path, err), s.Close())
	}
	return s, nil
}

func (s *Store) connect(ctx context.Context, how sqlstore.Opening) (err error) {
	if s.lines, err = lines.New(how.Step); err != nil {
		return err
	}
	if s.write, err = openConnection(dsn(s.path, false), keptByWriter); err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	if err := migrate(ctx, s.write, how); err != nil {
		return err
	}
	if s.file, err = os.Stat(s.path); err != nil {
		return err
	}
	if s.conn, err = s.write.Conn(ctx); err != nil {
		return err
	}
	if s.log, err = s.checkpointing(); err != nil {
		return err
	}
	if s.read, err = openConnection(dsn(s.path, true), keptByReader); err != nil {
		return err
	}
	s.read.SetMaxOpenConns(readers)
	s.read.SetMaxIdleConns(readers)
	s.read.SetConnMaxIdleTime(readerIdle)
	return s.build(ctx, how)
}

// build makes what runs on the database.
func (s *Store) build(ctx context.Context, how sqlstore.Opening) (err error) {
	db := database{dialect{s.read}, s}
	if s.Tier, err = lines.OpenCold(ctx, db, s.lines, how); err != nil {
		return err
	}
	s.Sealer, s.Masks = lines.NewSealer(db, s.lines), lines.NewMasks(db, s.lines)
	s.People = sqlstore.NewPeople(database{dialect{brief{s.read}}, s})
	s.Finder, s.Sums = sqlstore.NewFinder(db, selectSession), sqlstore.NewSums(db)
	s.Index = search.New(db, s.lines, &s.Finder)
	s.Keeper = sqlstore.NewKeeper(db)
	s.Policy = lines.NewPolicy(db, s.lines, s.Tier)
	s.writer = writer{s.conn, &s.Masks, s.lines}
	s.Artifacts, err = sqlstore.NewArtifacts(ctx, db, s.Tier)
	return err
}

// creating keeps createFile's file from being closed while SQLite has it open: closing any file drops the POSIX locks
// that this process holds on it.
var creating sync.Mutex

// createFile makes the file before SQLite does, which would give it the umask's mode; its WAL copies the mode.
func createFile(path string) error {
	creating.Lock()
	defer creating.Unlock()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("create store directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		var info os.FileInfo
		if info, err = os.Stat(path); err == nil && info.IsDir() {
			err = &fs.PathError{Op: "open", Path: path, Err: syscall.EISDIR}
		} else if err == nil {
			err = os.Chmod(path, 0o600)
		}
	case err == nil:
		err = f.Close()
	}
	return sqlstore.Wrap(err, "create store")
}

// dsn names the database for the driver. page_size works only before the first page is written, which switching to
// WAL does; the driver runs the _pragma values in alphabetical order, and _journal_mode after all of them.
func dsn(path string, readOnly bool) string {
	// mode=rw: a connection that opens later makes no empty database in the place of one that was removed.
	q := []string{"mode=rw", fmt.Sprintf("_busy_timeout=%d", busyTimeout)}
	if readOnly {
		q = append(q, "_query_only=1", "_pragma=cache_size(-2048)")
	} else {
		q = append(q,
			fmt.Sprintf("_pragma=page_size(%d)", pageSize),
			fmt.Sprintf("_pragma=wal_autocheckpoint(%d)", logMost),
			fmt.Sprintf("_pragma=journal_size_limit(%d)", logPages*pageSize*5/4),
			"_pragma=cache_size(-16384)",
			"_pragma=secure_delete(FAST)", // what is deleted is overwritten where that costs no page more
			"_journal_mode=WAL",
			"_synchronous=FULL",
			"_txlock=immediate", // a transaction that reads first and then writes does not wait for another writer, it fails
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
func (s *Store) Close() error {
	var errs []error
	if s.Index != nil {
		s.Index.Close()
	}
	if s.log != nil {
		errs = append(errs, s.log.close())
	}
	if s.read != nil {
		errs = append(errs, s.read.Close())
	}
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	if s.write != nil {
		errs = append(errs, s.write.Close())
	}
	return sqlstore.Wrap(errors.Join(errs...), "close store")
}

// inPlace returns server.ErrNoDatabase once the path names another file, or none: what is written then is lost when the
// last process closes the file that was opened.
func (s *Store) inPlace() error {
	info, err := os.Stat(s.path)
	if err == nil && os.SameFile(info, s.file) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("find database: %w", err)
	}
	return fmt.Errorf("%w: stop the server, put %s back, and start it again", server.ErrNoDatabase, s.path)
}

// Path is where the database is, absolute.
func (s *Store) Path() string { return s.path }

// Changes implements server.Watcher for what this process stores.
func (s *Store) Changes(ctx context.Context) (<-chan server.Change, error) {
	return s.changes.Listen(ctx), nil
}

const (
	// restShare is how many times as long as it took the last write of derived data is waited before the next while
	// lines come in: at most a twentieth of the time goes to background work.
	restShare = 19
	// restLive is the same after lines of live sessions: people wait for those.
	restLive = 2
	// quiet is how long no line has come in when nothing has to be left for them.
	quiet = 50 * time.Millisecond
	// restMax bounds the wait, so that one slow write is no long pause.
	restMax = 5 * time.Second
)

// pace spaces writes of derived data while lines come in. The zero value is ready.
type pace struct {
	mu    sync.Mutex
	until time.Time // guarded by mu
}

// wait returns when the pause is over, or before once idle reports that it is not needed.
func (p *pace) wait(ctx context.Context, idle func() bool) error {
	for {
		p.mu.Lock()
		rest := time.Until(p.until)
		p.mu.Unlock()
		if rest <= 0 || idle() {
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(rest, quiet/2)):
		}
	}
}

// took begins a pause after a write.
func (p *pace) took(d time.Duration, live bool) {
	pause := restShare * d
	if live {
		pause = restLive * d
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Now().Add(min(pause, restMax))
}

// idle says that no line is coming in.
func (s *Store) idle() bool {
	return s.ingesting.Load() == 0 && time.Now().UnixNano()-s.ingested.Load() > int64(quiet)
}

// Sizes implements server.Sizer: the database's file and its log.
func (s *Store) Sizes(ctx context.Context) (server.Sizes, error) {
	var out server.Sizes
	if err := s.read.QueryRowContext(ctx, `SELECT count(*) FROM streams`).Scan(&out.Streams); err != nil {
		return out, fmt.Errorf("count streams: %w", err)
	}
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(s.path + suffix)
		if err == nil {
			out.Bytes += info.Size()
		} else if !os.IsNotExist(err) {
			return out, fmt.Errorf("measure store: %w", err)
		}
	}
	return out, nil
}

// Check reads every page and every index, and calls problem for each defect.
func (s *Store) Check(ctx context.Context, problem func(string)) error {
	rows, err := s.read.QueryContext(ctx, `PRAGMA integrity_check`)
	if err != nil {
		return fmt.Errorf("check database: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var found string
		if err := rows.Scan(&found); err != nil {
			return fmt.Errorf("check database: %w", err)
		}
		if found != "ok" {
			problem(found)
		}
	}
	return sqlstore.Wrap(rows.Err(), "check database")
}

// Vacuum implements server.Retention. It writes the file anew without its free pages, and empties the log. A caller
// that stores waits.
func (s *Store) Vacuum(ctx context.Context, _ bool) error {
	err := s.leading(ctx, func(context.Context) error {
		_, err := s.conn.ExecContext(ctx, `VACUUM`)
		return err
	})
	if err != nil {
		return fmt.Errorf("give space back: %w", err)
	}
	s.emptyLog(ctx)
	return nil
}
