package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server"
)

// Forget implements server.Library in two steps. The first leaves a note that refuses more lines; all storing waits
// for it a moment. The second removes the streams and may take long. When it is interrupted, another Forget goes on.
// PostgreSQL keeps removed bytes in its files until it vacuums, and in its backups and logs as long as they are kept.
func (s *Postgres) Forget(ctx context.Context, scope server.Scope, session string, owner int64,
	at time.Time) (server.Forgotten, error) {
	var streams []owned
	err := s.withTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `LOCK TABLE forgotten IN EXCLUSIVE MODE`); err != nil {
			return err
		}
		var err error
		if streams, err = forgettablesPg(ctx, tx, scope, session, owner); err != nil {
			return err
		}
		if len(streams) == 0 {
			return server.ErrNotFound
		}
		return leaveNotes(ctx, tx, streams, session, at)
	})
	if err != nil {
		return server.Forgotten{}, fmt.Errorf("forget session %q: %w", session, err)
	}
	out := server.Forgotten{Owner: streams[0].owner, SessionID: session, At: moment(micros(at))}
	for _, x := range streams {
		lines, err := s.removeStream(ctx, x, session)
		if err != nil {
			return server.Forgotten{}, fmt.Errorf("forget session %q: %w", session, err)
		}
		out.Lines += lines
	}
	return out, nil
}

// forgettablesPg are the streams of a session and of its agents: those that its note will keep away.
func forgettablesPg(ctx context.Context, tx pgx.Tx, scope server.Scope, session string, owner int64) ([]owned, error) {
	if session == "" {
		return nil, nil
	}
	var f filter
	f.add(`(s.session_key = ? OR s.parent = ? OR starts_with(s.session_id, ?) OR starts_with(s.session_id, ?)
  OR starts_with(s.parent, ?) OR starts_with(s.parent, ?))`,
		key(session), session, session+"/", session+"~", session+"/", session+"~")
	f.own(scope)
	f.streams("", nil, owner)
	sql, args := numbered(`
SELECT s.id, s.owner, s.session_id, s.parent FROM streams s `+f.where()+` ORDER BY s.id`, f.args)
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("find streams: %w", err)
	}
	var out []owned
	var x owned
	var name, parent string
	_, err = pgx.ForEachRow(rows, []any{&x.stream, &x.owner, &name, &parent}, func() error {
		if covers(cleanText(session), name, parent) {
			out = append(out, x)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find streams: %w", err)
	}
	return out, oneOwner(ctx, pgDialect{tx}, session, out)
}

// leaveNotes keeps owners' sessions from being stored again.
func leaveNotes(ctx context.Context, tx pgx.Tx, streams []owned, session string, at time.Time) error {
	for _, x := range streams {
		_, err := tx.Exec(ctx, `
INSERT INTO forgotten (owner, session_key, session_id, at, lines) VALUES ($1, $2, $3, $4, 0)
ON CONFLICT (owner, session_key) DO UPDATE SET at = excluded.at`,
			x.owner, key(session), cleanText(session), micros(at))
		if err != nil {
			return fmt.Errorf("leave note: %w", err)
		}
	}
	return nil
}

// removeStream deletes a stream with everything of it, and answers how many lines it had. Its row goes first: whoever
// derives it is done before that, and finds it gone after.
func (s *Postgres) removeStream(ctx context.Context, x owned, session string) (lines int64, err error) {
	removed := int64(-1)
	err = s.withTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM streams WHERE id = $1`, x.stream)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			removed = max(removed, 0) // by another server, or by the try before, whose answer was lost
			return nil
		}
		if err := removeAnswersPg(ctx, tx, x); err != nil {
			return fmt.Errorf("remove answers: %w", err)
		}
		if err := removeArtifacts(ctx, pgDialect{tx}, x); err != nil {
			return fmt.Errorf("remove artifacts: %w", err)
		}
		for _, table := range []string{"texts", "drops", "superseded", "facts", "folds", "generations", "epochs"} {
			if _, err := tx.Exec(ctx, `DELETE FROM `+table+` WHERE stream = $1`, x.stream); err != nil {
				return fmt.Errorf("remove %s: %w", table, err)
			}
		}
		if tag, err = tx.Exec(ctx, `DELETE FROM lines WHERE stream = $1`, x.stream); err != nil {
			return fmt.Errorf("remove lines: %w", err)
		}
		removed = tag.RowsAffected()
		_, err = tx.Exec(ctx, `UPDATE forgotten SET lines = lines + $1 WHERE owner = $2 AND session_key = $3`,
			removed, x.owner, key(session))
		return err
	})
	return removed, err
}

// removeAnswersPg deletes a stream's copies of answers; of those that other streams have copies of, one counts again.
func removeAnswersPg(ctx context.Context, tx pgx.Tx, x owned) error {
	if err := lockTx(ctx, tx, lockOwner, x.owner); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, `DELETE FROM answers WHERE stream = $1 RETURNING key`, x.stream)
	if err != nil {
		return err
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, pgCountAnswers, x.owner, keys)
	return err
}
