package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// Put implements server.Ingester.
func (s *Store) Put(ctx context.Context, b *server.Batch) error {
	s.ingesting.Add(1)
	defer func() {
		s.ingested.Store(time.Now().UnixNano())
		s.ingesting.Add(-1)
	}()
	blocks, err := s.lines.Pack(b)
	if err != nil {
		return fmt.Errorf("store batch: %w", err)
	}
	return s.Tier.Retry(ctx, func() error { return s.queue.Put(ctx, b, blocks, s.writeGroup) })
}

// writeGroup writes a group in one transaction, and answers once it is durable (synchronous=FULL syncs the WAL at
// COMMIT). When that fails every batch is tried alone, so that a batch which cannot be stored does not take others with
// it. The caller holds lead. No request's context is used: the group is not one request's.
func (s *Store) writeGroup(group []*lines.Job) {
	ctx, done, stored := context.Background(), []outcome(nil), []*lines.Job(nil)
	err := s.exclusively(ctx, func() error {
		d := dialect{s.conn}
		admission := sqlstore.NewAdmission(d)
		for _, j := range group {
			b, c := j.Batch, server.Change{}
			err := admission.Admit(ctx, sqlstore.BatchWrite(b))
			if err == nil {
				c, err = s.writer.store(ctx, j)
				// Of two reasons to refuse a batch the ledger's comes first: what the writer learns from it covers the other.
				if _, refused := errors.AsType[*server.StreamError](err); refused {
					err = errors.Join(s.CheckWrite(ctx, d, b.Owner, &b.Head), err)
				} else if err == nil {
					err = s.RecordWrite(ctx, d, b.Owner, &b.Head, c.Stream)
				}
			}
			if err != nil && !errors.Is(err, server.ErrForgotten) && !errors.Is(err, server.ErrOverQuota) {
				return fmt.Errorf("store batch: %w", err)
			}
			if done = append(done, outcome{c, err}); err == nil {
				stored = append(stored, j)
			}
		}
		if err := s.repositories.Note(ctx, d, lines.Batches(stored)); err != nil {
			return fmt.Errorf("store batch: %w", err)
		}
		return nil
	})
	switch {
	case err == nil:
		s.answerGroup(group, done)
	case len(group) == 1:
		lines.AnswerAll(group, err)
	default:
		for i := range group {
			s.writeGroup(group[i : i+1])
		}
	}
}

// outcome is the result of a batch: the change to announce, server.ErrForgotten or a *server.QuotaError.
type outcome struct {
	change server.Change
	err    error
}

// answerGroup answers a durable group and announces its changes.
func (s *Store) answerGroup(group []*lines.Job, done []outcome) {
	for i, j := range group {
		j.Done <- done[i].err
		if done[i].err == nil {
			s.changes.Tell(done[i].change)
		}
	}
}

// exclusively runs fn in a write transaction. The caller holds lead.
func (s *Store) exclusively(ctx context.Context, fn func() error) error {
	if _, err := s.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	committed := false
	defer func() { // also behind a panic, which the one who serves a request recovers from
		if !committed {
			// Some errors (a full disk) have rolled back already; then this one fails, and there is nothing to undo.
			_, _ = s.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		}
	}()
	if err := fn(); err != nil {
		return err
	}
	if err := s.inPlace(); err != nil {
		return err
	}
	if _, err := s.conn.ExecContext(ctx, "COMMIT"); err != nil {
		return fmt.Errorf("commit transaction: %w", err)
	}
	committed = true
	s.log.look(ctx, s.conn)
	return nil
}

// withWriter runs fn in a write transaction of its own, once no other writer is active.
func (s *Store) withWriter(ctx context.Context, fn func(*sql.Conn) error) error {
	return s.leading(ctx, func(ctx context.Context) error {
		return s.exclusively(ctx, func() error { return fn(s.conn) })
	})
}

// leading calls fn once no other writer is active. fn is not cancelled.
func (s *Store) leading(ctx context.Context, fn func(context.Context) error) error {
	select {
	case s.queue.Lead <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.queue.Lead }()
	return fn(context.WithoutCancel(ctx))
}

// selectSession is the query of a sqlstore.Finder. SQLite keeps the order of a CROSS JOIN: the streams' order is the
// listing's.
var selectSession = `SELECT ` + sqlstore.SessionColumns + `
FROM streams s
CROSS JOIN epochs e ON e.owner = s.owner AND e.stream = s.id
  AND e.rank = (SELECT max(rank) FROM epochs WHERE owner = s.owner AND stream = s.id AND (? = '' OR name_key = ?))
CROSS JOIN generations g ON g.owner = e.owner AND g.stream = e.stream AND g.epoch = e.rank AND g.generation =
  (SELECT max(generation) FROM generations WHERE owner = e.owner AND stream = e.stream AND epoch = e.rank)
LEFT JOIN facts f ON f.owner = s.owner AND f.stream = s.id
`

// querier is a pool or one connection of it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// jsonList returns a list as one value of a query.
func jsonList[T int64 | string](list []T) string {
	if list == nil {
		list = []T{}
	}
	b, _ := json.Marshal(list) // numbers and strings always can be
	return string(b)
}

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
	place, number := free, s.numbers.take()
	free = func() { number(); place() }
	conn, err := s.read.Conn(ctx)
	if err != nil {
		free()
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	db := brief{conn}
	end := func() error {
		defer free()
		// Fails when BEGIN did; a connection that is not fit for the next one is found bad there.
		_, _ = db.ExecContext(ctx, "ROLLBACK")
		if err := conn.Close(); err != nil {
			return fmt.Errorf("close snapshot: %w", err)
		}
		return nil
	}
	// A read transaction sees one state until it ends: what WAL is for.
	if _, err := db.ExecContext(ctx, "BEGIN"); err != nil {
		return nil, errors.Join(fmt.Errorf("open snapshot: %w", err), end())
	}
	return s.lines.Open(ctx, lines.View{On: dialect{db}, Query: selectSession, End: end}, scope, ref)
}

// Received implements server.Library.
func (s *Store) Received(ctx context.Context, stream, epoch, generation, line int64) (time.Time, error) {
	at := lines.Place{Stream: stream, Epoch: epoch, Generation: generation}
	return s.lines.Received(ctx, dialect{s.read}, at, line)
}
