package sqlite

import (
	"context"
	"database/sql"
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
	ctx, done := context.Background(), []outcome(nil)
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
			done = append(done, outcome{c, err})
		}
		if err := s.repositories.Note(ctx, d, lines.Batches(group)); err != nil {
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
