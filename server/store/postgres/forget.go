package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// Forget implements server.Library in two steps. The first leaves a note that refuses more lines; all storing waits
// for that a moment, but not while the streams are looked for. The second removes the streams and may take long. When
// it is interrupted, another Forget goes on.
// PostgreSQL keeps removed bytes in its files until it vacuums, and in its backups and logs as long as they are kept.
func (s *Store) Forget(ctx context.Context, scope server.Scope, session string, owner int64,
	at time.Time) (server.Forgotten, error) {
	streams, err := s.forgettables(ctx, scope, session, owner)
	if err == nil {
		err = sqlstore.OneOwner(ctx, dialect{s.pool}, session, streams)
	}
	if err == nil && len(streams) == 0 {
		err = server.ErrNotFound
	}
	if err != nil {
		return server.Forgotten{}, fmt.Errorf("forget session %q: %w", session, err)
	}
	of := streams[0].Owner
	if err = s.leaveNote(ctx, of, session, at); err == nil {
		streams, err = s.forgettables(ctx, scope, session, owner) // again: one may have come before the note did
	}
	if err != nil {
		return server.Forgotten{}, fmt.Errorf("forget session %q: %w", session, err)
	}
	out := server.Forgotten{Owner: of, SessionID: session, At: sqlstore.Moment(sqlstore.Micros(at))}
	for _, x := range streams {
		if x.Owner != of {
			continue // came meanwhile, and nobody asked for it
		}
		lines, err := s.removeStream(ctx, x, session)
		if err != nil {
			return server.Forgotten{}, fmt.Errorf("forget session %q: %w", session, err)
		}
		out.Lines += lines
	}
	return out, nil
}

// forgettables are sqlstore.Forgettables. It holds no lock.
func (s *Store) forgettables(ctx context.Context, scope server.Scope, session string,
	owner int64) (found []sqlstore.OwnedStream, err error) {
	err = s.persist(ctx, func(ctx context.Context) (err error) {
		found, err = sqlstore.Forgettables(ctx, dialect{s.pool}, scope, session, owner)
		return err
	})
	return found, err
}

// leaveNote keeps an owner's session from being stored again. Once it returns, every writer sees the note: all
// storing waits while it takes its lock, which it gives up for a moment when it does not get it soon.
func (s *Store) leaveNote(ctx context.Context, owner int64, session string, at time.Time) error {
	err := s.persist(ctx, func(ctx context.Context) error {
		return s.try(ctx, classBarrier, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `LOCK TABLE forgotten IN EXCLUSIVE MODE`); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `
INSERT INTO forgotten (owner, session_key, session_id, at, lines) VALUES ($1, $2, $3, $4, 0)
ON CONFLICT (owner, session_key) DO UPDATE SET at = excluded.at`,
				owner, sqlstore.Key(session), sqlstore.CleanText(session), sqlstore.Micros(at))
			return err
		})
	})
	return sqlstore.Wrap(err, "leave note")
}

// removeStream deletes a stream with everything of it, and answers how many lines it had. Its row is locked first: who
// derives it is done before that, or finds it gone after.
func (s *Store) removeStream(ctx context.Context, x sqlstore.OwnedStream, session string) (lines int64, err error) {
	removed := int64(-1)
	err = s.inBackground(ctx, func(tx pgx.Tx) error {
		// As derivers lock: the owner's answers, then the stream. Sums of answers need the stream's row.
		if err := (dialect{tx}).Hold(ctx, sqlstore.HeldOwner, x.Owner); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `SELECT FROM streams WHERE owner = $1 AND id = $2 FOR UPDATE`, x.Owner, x.Stream)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			removed = max(removed, 0) // by another server, or by the try before, whose answer was lost
			return nil
		}
		if removed, err = s.lines.Forget(ctx, dialect{tx}, x); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE forgotten SET lines = lines + $1 WHERE owner = $2 AND session_key = $3`,
			removed, x.Owner, sqlstore.Key(session))
		return err
	})
	return removed, err
}
