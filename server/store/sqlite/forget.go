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
		streams, err := sqlstore.Forgettables(ctx, dialect{c}, scope, session, owner)
		if err == nil {
			err = sqlstore.OneOwner(ctx, dialect{c}, session, streams)
		}
		if err == nil && len(streams) == 0 {
			err = server.ErrNotFound
		}
		if err != nil {
			return err
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

// forget removes streams and leaves a tombstone for each owner.
func (s *Store) forget(ctx context.Context, c *sql.Conn, streams []sqlstore.OwnedStream, session string,
	at time.Time) (server.Forgotten, error) {
	out := server.Forgotten{Owner: streams[0].Owner, SessionID: session, At: sqlstore.Moment(sqlstore.Micros(at))}
	for _, x := range streams {
		lines, err := s.lines.Forget(ctx, dialect{c}, x)
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
