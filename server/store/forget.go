package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// Forget implements server.Library. Removed data is overwritten in the file.
func (s *SQLite) Forget(ctx context.Context, scope server.Scope, session string, owner int64,
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
		if _, err := c.ExecContext(ctx, `PRAGMA secure_delete = ON`); err != nil {
			return err
		}
		out, err = forget(ctx, c, streams, session, at)
		_, back := c.ExecContext(ctx, `PRAGMA secure_delete = FAST`)
		return errors.Join(err, back)
	})
	if err != nil {
		return server.Forgotten{}, fmt.Errorf("forget session %q: %w", session, err)
	}
	s.emptyLog(ctx)
	return out, nil
}

// emptyLog empties the write-ahead log. While a reader is active that is impossible; then later writes do it.
func (s *SQLite) emptyLog(ctx context.Context) {
	select {
	case s.lead <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-s.lead }()
	ctx = context.WithoutCancel(ctx)
	for _, query := range []string{
		`PRAGMA busy_timeout = 0`, `PRAGMA wal_checkpoint(TRUNCATE)`, fmt.Sprintf(`PRAGMA busy_timeout = %d`, busyTimeout),
	} {
		_, _ = s.conn.ExecContext(ctx, query) // later writes retry what fails here
	}
}

// owned is a stream and its owner.
type owned struct{ stream, owner int64 }

// forgettables are the streams of a session and of its agents, which its tombstone will refuse.
func forgettables(ctx context.Context, c *sql.Conn, scope server.Scope, session string, owner int64) ([]owned, error) {
	if session == "" {
		return nil, nil
	}
	var f filter
	f.add(`(s.session_id = ? OR s.parent <> '' OR instr(s.session_id, ?) = 1)`, session, session)
	f.own(scope)
	f.streams("", nil, owner)
	var out []owned
	_, err := list(ctx, sqliteDialect{c}, `
SELECT s.id, s.owner, s.session_id, s.parent FROM streams s `+f.where()+` ORDER BY s.id`,
		f.args, func(row scanner) (_ struct{}, err error) {
			var x owned
			var name, parent string
			err = row.Scan(&x.stream, &x.owner, &name, &parent)
			if covers(session, name, parent) {
				out = append(out, x)
			}
			return struct{}{}, err
		})
	if err != nil {
		return nil, fmt.Errorf("find streams: %w", err)
	}
	return out, oneOwner(ctx, sqliteDialect{c}, session, out)
}

// oneOwner is an *server.AmbiguousError when streams of one session and its agents belong to several users.
func oneOwner(ctx context.Context, l dialect, session string, streams []owned) error {
	no := &server.AmbiguousError{Session: session}
	for _, x := range streams {
		if slices.ContainsFunc(no.Choices, func(a server.Address) bool { return a.Owner == x.owner }) {
			continue
		}
		a, err := resolve(ctx, l, server.Scope{All: true}, server.Ref{Stream: x.stream}, (*filter).scope)
		if err != nil {
			return err
		}
		if no.Choices = append(no.Choices, a); len(no.Choices) == server.MaxChoices {
			break
		}
	}
	if len(no.Choices) > 1 {
		return no
	}
	return nil
}

// covers reports whether forgetting a session forgets the stream of that name and parent.
func covers(session, name, parent string) bool {
	return slices.Contains(transcript.ForgetNames(name), session) ||
		slices.Contains(transcript.ForgetNames(parent), session)
}

// forget removes streams and leaves a tombstone for each owner.
func forget(ctx context.Context, c *sql.Conn, streams []owned, session string, at time.Time) (server.Forgotten, error) {
	out := server.Forgotten{Owner: streams[0].owner, SessionID: session, At: moment(micros(at))}
	for _, x := range streams {
		lines, err := removeStream(ctx, c, x)
		if err != nil {
			return out, err
		}
		out.Lines += lines
		_, err = c.ExecContext(ctx, `
INSERT INTO forgotten (owner, session_id, at, lines) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET at = excluded.at, lines = lines + excluded.lines`, x.owner, session, micros(at), lines)
		if err != nil {
			return out, fmt.Errorf("leave note: %w", err)
		}
	}
	return out, nil
}

// removeStream deletes a stream with everything that belongs to it, and returns how many lines it had.
func removeStream(ctx context.Context, c *sql.Conn, x owned) (lines int64, err error) {
	if err := removeAnswers(ctx, c, x); err != nil {
		return 0, fmt.Errorf("remove answers: %w", err)
	}
	if err := removeArtifacts(ctx, sqliteDialect{c}, x); err != nil {
		return 0, fmt.Errorf("remove artifacts: %w", err)
	}
	const epochs = ` IN (SELECT id FROM epochs WHERE stream = ?)`
	for _, query := range []string{
		`DELETE FROM texts_index WHERE rowid IN (SELECT id FROM texts WHERE epoch` + epochs + `)`,
		`DELETE FROM texts WHERE epoch` + epochs,
		`DELETE FROM drops WHERE epoch` + epochs,
		`DELETE FROM superseded WHERE epoch` + epochs,
		`DELETE FROM facts WHERE stream = ?`,
		`DELETE FROM folds WHERE stream = ?`,
		`DELETE FROM generations WHERE epoch` + epochs,
	} {
		if _, err := c.ExecContext(ctx, query, x.stream); err != nil {
			return 0, fmt.Errorf("remove stream: %w", err)
		}
	}
	res, err := c.ExecContext(ctx, `DELETE FROM lines WHERE epoch`+epochs, x.stream)
	if err != nil {
		return 0, fmt.Errorf("remove lines: %w", err)
	}
	if lines, err = res.RowsAffected(); err != nil {
		return 0, err
	}
	for _, query := range []string{`DELETE FROM epochs WHERE stream = ?`, `DELETE FROM streams WHERE id = ?`} {
		if _, err := c.ExecContext(ctx, query, x.stream); err != nil {
			return 0, fmt.Errorf("remove stream: %w", err)
		}
	}
	return lines, nil
}

// removeAnswers deletes a stream's copies of answers; if other streams have copies too, one of those counts from then
// on.
func removeAnswers(ctx context.Context, c *sql.Conn, x owned) error {
	keys, err := list(ctx, sqliteDialect{c}, `SELECT a.key FROM answers a WHERE a.stream = ?1 AND EXISTS (
  SELECT 1 FROM answers b WHERE b.owner = a.owner AND b.key = a.key AND b.stream <> ?1)`, []any{x.stream},
		func(row scanner) (key string, err error) { return key, row.Scan(&key) })
	if err != nil {
		return err
	}
	if _, err := c.ExecContext(ctx, `DELETE FROM answers WHERE stream = ?`, x.stream); err != nil {
		return err
	}
	for _, key := range keys {
		if _, err := c.ExecContext(ctx, countAnswer, x.owner, key); err != nil {
			return err
		}
	}
	return nil
}
