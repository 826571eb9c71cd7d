package postgres

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// Open implements server.Catalog.
func (s *Store) Open(ctx context.Context, ref server.Ref) (server.Snapshot, error) {
	return s.View(ctx, server.Scope{All: true}, ref)
}

// View implements server.Library. It waits while too many snapshots are open.
func (s *Store) View(ctx context.Context, scope server.Scope, ref server.Ref) (server.Snapshot, error) {
	free, err := s.open.Take(ctx, scope.User)
	if err != nil {
		return nil, err
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		free()
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	end := func() error {
		defer free()
		// When this fails the connection is broken, and the pool throws it away.
		_, _ = conn.Exec(context.WithoutCancel(ctx), `ROLLBACK`)
		conn.Release()
		return nil
	}
	batch := &pgx.Batch{}
	batch.Queue(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
	batch.Queue(`SELECT set_config('statement_timeout', '0', true)`) // a long stream may take as long as it takes
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		return nil, errors.Join(fmt.Errorf("open snapshot: %w", err), end())
	}
	return s.lines.Open(ctx, lines.View{On: dialect{conn}, Query: selectSession, End: end}, scope, ref)
}

// Received implements server.Library.
func (s *Store) Received(ctx context.Context, stream, epoch, generation, line int64) (time.Time, error) {
	at := lines.Place{Stream: stream, Epoch: epoch, Generation: generation}
	return s.lines.Received(ctx, dialect{s.pool}, at, line)
}

const (
	// pgChannel is the channel on which servers announce stored changes to each other.
	pgChannel = "ccship_stored"
	// payload is what PostgreSQL takes at most in one notice.
	payload = 7999
	// noticesRoom bounds how many changes wait to be announced to other servers; more are dropped.
	noticesRoom = 1024
	// gather is how long changes are collected after the first, to be announced together.
	gather = 10 * time.Millisecond
	// relisten is how long a broken connection for listening rests.
	relisten = time.Second
)

// notices announces changes of this server to others, and those of others to its listeners. Storing waits for none of
// it: a transaction that notifies holds a lock that all such transactions of the cluster share until it is durable,
// so notices go in transactions of their own, many in one, which wait for no disk.
type notices struct {
	changes sqlstore.Changes
	self    string // distinguishes own notices from others'
	wake    chan struct{}
	start   sync.Once
	stop    context.CancelFunc // set by start
	running sync.WaitGroup

	mu      sync.Mutex
	pending []server.Change // guarded by mu
}

// notice is what goes over the channel.
type notice struct {
	From   string
	Change server.Change
}

func newNotices() *notices {
	return &notices{self: rand.Text(), wake: make(chan struct{}, 1), stop: func() {}}
}

// tell passes a change on to listeners here, and later to other servers. It never blocks.
func (n *notices) tell(change server.Change) {
	n.changes.Tell(change)
	n.mu.Lock()
	if len(n.pending) < noticesRoom {
		n.pending = append(n.pending, change)
	}
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// take answers the changes to announce to others, as payloads. It leaves out those that are too long: all are hints.
func (n *notices) take() (payloads []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, change := range n.pending {
		if b, err := json.Marshal(notice{n.self, change}); err == nil && len(b) <= payload {
			payloads = append(payloads, sqlstore.CleanText(string(b)))
		}
	}
	n.pending = n.pending[:0]
	return payloads
}

// Changes implements server.Watcher: what any server on this database stores.
func (s *Store) Changes(ctx context.Context) (<-chan server.Change, error) {
	s.begin()
	return s.notices.changes.Listen(ctx), nil
}

// begin starts telling, listening, and what is left to index, which end with Close. A store that only manages keys does
// neither.
func (s *Store) begin() {
	s.notices.start.Do(func() {
		ctx, cancel := context.WithCancel(context.Background())
		s.notices.stop = cancel
		s.notices.running.Go(func() { s.notify(ctx) })
		s.notices.running.Go(func() { s.listen(ctx) })
	})
}

// notify announces changes to others until ctx is done. It drops what it cannot send.
func (s *Store) notify(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.notices.wake:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(gather):
		}
		if payloads := s.notices.take(); len(payloads) > 0 {
			_, _ = s.pool.Exec(ctx, `
SELECT set_config('synchronous_commit', 'off', true), count(pg_notify($1, p)) FROM unnest($2::text[]) p`,
				pgChannel, payloads)
		}
	}
}

// listen receives others' changes until ctx is done, on a connection of its own.
func (s *Store) listen(ctx context.Context) {
	for ctx.Err() == nil {
		_ = s.hear(ctx) // a connection that broke is made again
		select {
		case <-ctx.Done():
		case <-time.After(relisten):
		}
	}
}

func (s *Store) hear(ctx context.Context) error {
	config := s.direct.Copy()
	config.BuildContextWatcherHandler = closing // there is no query to cancel
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // what it reports, reading reports too
	if _, err := conn.Exec(ctx, `LISTEN `+pgChannel); err != nil {
		return err
	}
	for {
		heard, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		var n notice
		if json.Unmarshal([]byte(heard.Payload), &n) == nil && n.From != s.notices.self {
			s.notices.changes.Tell(n.Change)
		}
	}
}

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
