package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// database implements sqlstore.DB.
type database struct {
	sqlstore.Dialect
	s *Store
}

// Read implements sqlstore.DB.
func (b database) Read(ctx context.Context, fn func(sqlstore.Dialect) error) error {
	conn, err := b.s.read.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer b.s.numbers.take()()
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	err = fn(dialect{conn})
	_, end := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	return errors.Join(err, end)
}

// Write implements sqlstore.DB.
func (b database) Write(ctx context.Context, how sqlstore.How, fn func(sqlstore.Dialect) error) error {
	err := b.s.Tier.Retry(ctx, func() error { return b.s.writeAs(ctx, how, fn) })
	if how&sqlstore.Once != 0 {
		err = translate(err)
	}
	return err
}

// writeAs runs fn in a transaction. What lets pass what comes in, or is lazy, waits while lines are being stored, so
// that it does not delay them: packing does not make deriving wait.
func (s *Store) writeAs(ctx context.Context, how sqlstore.How, fn func(sqlstore.Dialect) error) (err error) {
	write := s.withWriter
	if how&sqlstore.Lazy != 0 {
		write = s.withLazyWriter
	}
	began := time.Time{}
	switch {
	case how&sqlstore.Patient != 0:
		err = s.packing.wait(ctx, s.idle)
		defer func() {
			if !began.IsZero() {
				s.packing.took(time.Since(began), false)
			}
		}()
	case how&sqlstore.Lazy != 0:
		err = s.derived.wait(ctx, s.idle)
	}
	if err != nil {
		return err
	}
	return write(ctx, func(c *sql.Conn) error {
		began = time.Now()
		if how&sqlstore.Erase != 0 {
			return securely(ctx, c, func() error { return fn(dialect{c}) })
		}
		return fn(dialect{c})
	})
}

// Tell implements sqlstore.DB.
func (b database) Tell(c server.Change) { b.s.changes.Tell(c) }

// Snapshots implements sqlstore.DB. It does not know of other processes.
func (b database) Snapshots(context.Context) (oldest, next int64, err error) {
	n := &b.s.numbers
	n.mu.Lock()
	defer n.mu.Unlock()
	oldest = n.next
	for open := range n.open {
		oldest = min(oldest, open)
	}
	return oldest, n.next, nil
}

// numbers are those of the snapshots that are open, ascending in the order in which they were opened.
type numbers struct {
	mu   sync.Mutex
	next int64              // guarded by mu
	open map[int64]struct{} // guarded by mu
}

// take gives a snapshot its number, which it has until free is called. It is called before the snapshot is opened.
func (n *numbers) take() (free func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	mine := n.next
	if n.next++; n.open == nil {
		n.open = map[int64]struct{}{}
	}
	n.open[mine] = struct{}{}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.open, mine)
	}
}

// dialect is the dialect of SQLite.
type dialect struct{ db executor }

// executor is a pool or one connection of it, to write with too.
type executor interface {
	querier
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func (l dialect) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := l.db.ExecContext(ctx, query, sqlstore.CleanValues(args)...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (l dialect) Query(ctx context.Context, query string, args []any, row func(sqlstore.Scanner) error) error {
	rows, err := l.db.QueryContext(ctx, query, sqlstore.CleanValues(args)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// There is only one writer.

func (l dialect) Lock(ctx context.Context, query string, args []any, row func(sqlstore.Scanner) error) error {
	return l.Query(ctx, query, args, row)
}

func (l dialect) SkipLocked(ctx context.Context, query string, args []any, row func(sqlstore.Scanner) error) error {
	return l.Query(ctx, query, args, row)
}

func (l dialect) Hold(context.Context, sqlstore.Held, int64) error { return nil }

func (l dialect) TryHold(context.Context, sqlstore.Held, int64) (bool, error) { return true, nil }

// brief runs statements that end soon, and ignores the caller's cancellation: watching a context costs two goroutines
// and more than most of them.
type brief struct{ executor }

func (b brief) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return b.executor.ExecContext(context.WithoutCancel(ctx), query, args...)
}

func (b brief) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return b.executor.QueryContext(context.WithoutCancel(ctx), query, args...)
}

func (b brief) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return b.executor.QueryRowContext(context.WithoutCancel(ctx), query, args...)
}

// isTaken reports whether a row with the same name exists.
func isTaken(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code() == lib.SQLITE_CONSTRAINT_UNIQUE || e.Code() == lib.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// isBusy reports whether another process has the database.
func isBusy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code()&0xff == lib.SQLITE_BUSY || e.Code()&0xff == lib.SQLITE_LOCKED)
}

// translate converts errors to those of package server.
func translate(err error) error {
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return server.ErrNotFound
	case isTaken(err):
		return server.ErrExists
	}
	return err
}

const (
	upsertStream = `
INSERT INTO streams (owner, session_key, machine_key, session_id, machine, project_hash, host, project, cwd, path,
  parent, first_received, last_received)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12)
ON CONFLICT (owner, session_key, machine_key) DO UPDATE SET
  project_hash = CASE excluded.project_hash WHEN '' THEN project_hash ELSE excluded.project_hash END,
  host = CASE excluded.host WHEN '' THEN host ELSE excluded.host END,
  project = CASE excluded.project WHEN '' THEN project ELSE excluded.project END,
  cwd = CASE excluded.cwd WHEN '' THEN cwd ELSE excluded.cwd END,
  path = CASE excluded.path WHEN '' THEN path ELSE excluded.path END,
  parent = CASE excluded.parent WHEN '' THEN parent ELSE excluded.parent END,
  last_received = max(last_received, excluded.last_received),
  version = version + 1
RETURNING id, project_hash, masked`
	findEpoch = `
SELECT rank, rank = (SELECT max(rank) FROM epochs WHERE owner = ?1 AND stream = ?2) FROM epochs
WHERE owner = ?1 AND stream = ?2 AND name_key = ?3`
	insertEpoch = `
INSERT INTO epochs (owner, stream, rank, name, name_key, first_seen)
VALUES (?1, ?2, (SELECT coalesce(max(rank), 0) + 1 FROM epochs WHERE owner = ?1 AND stream = ?2), ?3, ?4, ?5)
RETURNING rank`
	findNewest = `
SELECT generation, rewound_to, max(end_line, rewound_to) FROM generations
WHERE owner = ?1 AND stream = ?2 AND epoch = ?3 ORDER BY generation DESC LIMIT 1`
	// Of two requests that end at the same offset the later one knows more.
	upsertGeneration = `
INSERT INTO generations (owner, stream, epoch, generation, rewound_to, end_line, end_offset, eof_newline, bytes,
  stored_to, first_seen)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, 0, ?9)
ON CONFLICT (owner, stream, epoch, generation) DO UPDATE SET
  rewound_to = min(rewound_to, excluded.rewound_to),
  end_line = max(end_line, excluded.end_line),
  eof_newline = CASE WHEN excluded.end_offset >= end_offset THEN excluded.eof_newline ELSE eof_newline END,
  end_offset = max(end_offset, excluded.end_offset)
RETURNING stored_to`
	grow = `
UPDATE generations SET bytes = bytes + ?5, stored_to = max(stored_to, ?6)
WHERE owner = ?1 AND stream = ?2 AND epoch = ?3 AND generation = ?4`
	markRedo = `UPDATE streams SET redo = 1 WHERE id = ?1`
)

// writer stores batches on the writer's connection, which keeps what it has compiled.
type writer struct {
	conn  *sql.Conn
	masks *lines.Masks
	lines *lines.Lines
}

// store writes one batch inside the open transaction and returns the change to announce. server.ErrForgotten
// leaves nothing behind.
func (s *writer) store(ctx context.Context, j *lines.Job) (server.Change, error) {
	b := j.Batch
	h, now := &b.Head, b.Received.UnixMicro()
	if err := sqlstore.NotForgotten(ctx, dialect{s.conn}, b.Owner, h); err != nil {
		return server.Change{}, err
	}
	c := server.Change{SessionID: h.SessionID, Machine: h.Machine, Owner: b.Owner, Generation: h.Generation,
		At: b.Received}
	var masked int64
	shown := sqlstore.Clean(*h) // as a query for it or a share of it names it
	err := s.conn.QueryRowContext(ctx, upsertStream, b.Owner, sqlstore.Key(h.SessionID), sqlstore.Key(h.Machine),
		shown.SessionID, shown.Machine, shown.ProjectHash, shown.Host, shown.Project, shown.Cwd, shown.Path, shown.Parent,
		now).Scan(&c.Stream, &c.Project, &masked)
	if err != nil {
		return c, fmt.Errorf("write stream: %w", err)
	}
	e, err := s.end(ctx, c.Owner, c.Stream, h, now)
	if err != nil {
		return c, fmt.Errorf("write epoch: %w", err)
	}
	if err := e.CheckFront(ctx, dialect{s.conn}, sqlstore.OwnedStream{Stream: c.Stream, Owner: c.Owner}, h); err != nil {
		return c, err
	}
	stored := int64(0)
	err = s.conn.QueryRowContext(ctx, upsertGeneration, b.Owner, c.Stream, e.Epoch, h.Generation, h.RewoundTo, h.EndLine,
		h.EndOffset, h.EOFNewline, now).Scan(&stored)
	if err != nil {
		return c, fmt.Errorf("write generation: %w", err)
	}
	at := lines.Place{Owner: b.Owner, Stream: c.Stream, Epoch: e.Epoch, Generation: h.Generation}
	w, err := s.writeLines(ctx, at, stored, masked, j)
	if _, refused := errors.AsType[*server.StreamError](err); !refused && err != nil {
		err = fmt.Errorf("write lines: %w", err)
	}
	if err != nil {
		return c, err
	}
	c.From, c.To = w.From, w.To
	if e.Behind(h, w) {
		if _, err := s.conn.ExecContext(ctx, markRedo, c.Stream); err != nil {
			return c, fmt.Errorf("write stream: %w", err)
		}
	}
	return c, nil
}

// writeLines writes a batch's lines, of a stream that was masked so often, into a generation.
func (s *writer) writeLines(ctx context.Context, at lines.Place, storedTo, masked int64,
	j *lines.Job) (w sqlstore.Written, err error) {
	d := dialect{s.conn}
	now, list, err := s.masks.Known(ctx, d, at.Stream, masked, j)
	if err == nil {
		w, err = s.lines.Put(ctx, d, at, storedTo, now)
	}
	if err == nil && w.Any {
		_, err = s.conn.ExecContext(ctx, grow, at.Owner, at.Stream, at.Epoch, at.Generation, w.Bytes, w.To)
	}
	if err == nil {
		err = s.masks.Settle(ctx, d, at, j.Batch, list)
	}
	return w, err
}

// end finds or makes the batch's epoch.
func (s *writer) end(ctx context.Context, owner, stream int64, h *server.Head, now int64) (e sqlstore.End,
	err error) {
	err = s.conn.QueryRowContext(ctx, findEpoch, owner, stream, sqlstore.Key(h.Epoch)).Scan(&e.Epoch, &e.Front)
	if errors.Is(err, sql.ErrNoRows) {
		e.Front, e.First = true, true
		return e, s.conn.QueryRowContext(ctx, insertEpoch, owner, stream, sqlstore.CleanText(h.Epoch),
			sqlstore.Key(h.Epoch), now).Scan(&e.Epoch)
	}
	if err != nil {
		return e, err
	}
	err = s.conn.QueryRowContext(ctx, findNewest, owner, stream, e.Epoch).Scan(&e.Generation, &e.Rewound, &e.Line)
	return e, err
}
