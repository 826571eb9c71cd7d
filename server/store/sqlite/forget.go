package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// Forget implements server.Library. Removed data is overwritten in the file.
func (s *Store) Forget(ctx context.Context, scope server.Scope, session string, owner int64,
	at time.Time) (server.Forgotten, error) {
	var out server.Forgotten
	err := s.withWriter(ctx, func(c *sql.Conn) error {
		streams, err := forgettables(ctx, c, scope, session, owner)
		if err != nil {
			return err
		}
		if len(streams) == 0 {
			return server.ErrNotFound
		}
		return securely(ctx, c, func() error {
			out, err = s.forget(ctx, c, streams, session, at)
			return err
		})
	})
	if err != nil {
		return server.Forgotten{}, fmt.Errorf("forget session %q: %w", session, err)
	}
	s.emptyLog(ctx)
	return out, nil
}

// securely runs fn, and overwrites what it removes.
func securely(ctx context.Context, c *sql.Conn, fn func() error) error {
	if _, err := c.ExecContext(ctx, `PRAGMA secure_delete = ON`); err != nil {
		return err
	}
	err := fn()
	_, back := c.ExecContext(ctx, `PRAGMA secure_delete = FAST`)
	return errors.Join(err, back)
}

// emptyLog empties the write-ahead log, and reports whether it could. While a reader is active that is impossible; then
// later writes do it.
func (s *Store) emptyLog(ctx context.Context) bool {
	select {
	case s.queue.Lead <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	defer func() { <-s.queue.Lead }()
	ctx = context.WithoutCancel(ctx)
	busy := int64(1)
	_, err := s.conn.ExecContext(ctx, `PRAGMA busy_timeout = 0`)
	if err == nil {
		var log, done int64
		err = s.conn.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &log, &done)
	}
	_, back := s.conn.ExecContext(ctx, fmt.Sprintf(`PRAGMA busy_timeout = %d`, busyTimeout))
	return errors.Join(err, back) == nil && busy == 0
}

// forgettables are the streams of a session and of its agents, which its tombstone will refuse.
func forgettables(ctx context.Context, c *sql.Conn, scope server.Scope, session string,
	owner int64) ([]sqlstore.OwnedStream, error) {
	if session == "" {
		return nil, nil
	}
	session = sqlstore.CleanText(session)
	var f sqlstore.Filter
	f.Add(`(s.session_id = ? OR s.parent <> '' OR instr(s.session_id, ?) = 1)`, session, session)
	f.Own(scope)
	f.Streams(nil, owner)
	var out []sqlstore.OwnedStream
	_, err := sqlstore.List(ctx, dialect{c}, `
SELECT s.id, s.owner, s.session_id, s.parent FROM streams s `+f.Where()+` ORDER BY s.id`,
		f.Args, func(row sqlstore.Scanner) (_ struct{}, err error) {
			var x sqlstore.OwnedStream
			var name, parent string
			err = row.Scan(&x.Stream, &x.Owner, &name, &parent)
			if sqlstore.ForgetCovers(session, name, parent) {
				out = append(out, x)
			}
			return struct{}{}, err
		})
	if err != nil {
		return nil, fmt.Errorf("find streams: %w", err)
	}
	return out, sqlstore.OneOwner(ctx, dialect{c}, session, out)
}

// forget removes streams and leaves a tombstone for each owner.
func (s *Store) forget(ctx context.Context, c *sql.Conn, streams []sqlstore.OwnedStream, session string,
	at time.Time) (server.Forgotten, error) {
	out := server.Forgotten{Owner: streams[0].Owner, SessionID: session, At: sqlstore.Moment(sqlstore.Micros(at))}
	for _, x := range streams {
		lines, err := s.removeStream(ctx, c, x)
		if err != nil {
			return out, err
		}
		out.Lines += lines
		_, err = c.ExecContext(ctx, `
INSERT INTO forgotten (owner, session_key, session_id, at, lines) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET at = excluded.at, lines = lines + excluded.lines`, x.Owner, sqlstore.Key(session),
			sqlstore.CleanText(session), sqlstore.Micros(at), lines)
		if err != nil {
			return out, fmt.Errorf("leave note: %w", err)
		}
	}
	return out, nil
}

// removeStream deletes a stream with everything that belongs to it, and returns how many lines it had.
func (s *Store) removeStream(ctx context.Context, c *sql.Conn, x sqlstore.OwnedStream) (lines int64, err error) {
	if err := sqlstore.RemoveAnswers(ctx, dialect{c}, x); err != nil {
		return 0, fmt.Errorf("remove answers: %w", err)
	}
	if err := sqlstore.RemoveArtifacts(ctx, dialect{c}, x); err != nil {
		return 0, fmt.Errorf("remove artifacts: %w", err)
	}
	if err := sqlstore.DropFromIndex(ctx, dialect{c}, x.Owner, x.Stream); err != nil {
		return 0, fmt.Errorf("remove texts: %w", err)
	}
	if err := sqlstore.RemoveEdits(ctx, dialect{c}, x.Owner, x.Stream); err != nil {
		return 0, err
	}
	if lines, err = s.lines.Remove(ctx, dialect{c}, x.Owner, x.Stream); err != nil {
		return 0, err
	}
	for _, table := range []string{"drops", "superseded", "facts", "folds", "moments", "masked_lines", "maskings",
		"generations", "epochs"} {
		_, err := c.ExecContext(ctx, `DELETE FROM `+table+` WHERE owner = ? AND stream = ?`, x.Owner, x.Stream)
		if err != nil {
			return 0, fmt.Errorf("remove %s: %w", table, err)
		}
	}
	if _, err := c.ExecContext(ctx, `DELETE FROM streams WHERE id = ?`, x.Stream); err != nil {
		return 0, fmt.Errorf("remove stream: %w", err)
	}
	return lines, nil
}
