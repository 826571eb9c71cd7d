package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/ccship/ccship/server"
)

// groupBytes bounds one transaction: enough that a backlog costs few syncs, little enough that a line that was just
// written does not wait long behind it.
const groupBytes = 8 << 20

// job is one batch on its way into a transaction. done is sent exactly one answer.
type job struct {
	batch *server.Batch
	bytes int
	done  chan error
}

// Put implements server.Ingester. Batches that wait for the same disk share a transaction: whoever finds nobody
// writing takes all that wait, without waiting for more, so that a lone batch is not delayed.
func (s *SQLite) Put(ctx context.Context, b *server.Batch) error {
	j := &job{batch: b, done: make(chan error, 1)}
	for _, l := range b.Lines {
		j.bytes += len(l.Raw)
	}
	s.mu.Lock()
	s.pending = append(s.pending, j)
	s.mu.Unlock()
	for {
		select {
		case err := <-j.done:
			return err
		default:
		}
		select {
		case err := <-j.done:
			return err
		case s.lead <- struct{}{}:
			s.writeGroup()
			<-s.lead
		case <-ctx.Done():
			if s.withdraw(j) {
				return ctx.Err()
			}
			return <-j.done // being written: its bytes are in use until there is an answer
		}
	}
}

// withdraw takes a job back that nobody has taken yet.
func (s *SQLite) withdraw(j *job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.pending, j)
	if i < 0 {
		return false
	}
	s.pending = slices.Delete(s.pending, i, i+1)
	return true
}

// take removes the oldest pending jobs, up to groupBytes but at least one.
func (s *SQLite) take() []*job {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, bytes := 0, 0
	for n < len(s.pending) && (n == 0 || bytes+s.pending[n].bytes <= groupBytes) {
		bytes += s.pending[n].bytes
		n++
	}
	group := slices.Clone(s.pending[:n])
	s.pending = slices.Delete(s.pending, 0, n)
	return group
}

// writeGroup writes what waits in one transaction. When that fails every batch is tried alone, so that a batch which
// cannot be stored does not take others with it. The caller holds lead. No request's context is used: the group is
// not one request's.
func (s *SQLite) writeGroup() {
	group := s.take()
	if len(group) == 0 {
		return
	}
	err := s.transact(context.Background(), group)
	if err == nil || len(group) == 1 {
		for _, j := range group {
			j.done <- err
		}
		return
	}
	for _, j := range group {
		j.done <- s.transact(context.Background(), []*job{j})
	}
}

// transact stores a group and returns once it is durable (synchronous=FULL syncs the WAL at COMMIT).
func (s *SQLite) transact(ctx context.Context, group []*job) error {
	return s.exclusively(ctx, func() error {
		for _, j := range group {
			if err := s.stmts.store(ctx, j.batch); err != nil {
				return fmt.Errorf("store batch: %w", err)
			}
		}
		return nil
	})
}

// exclusively runs fn in a write transaction. The caller holds lead.
func (s *SQLite) exclusively(ctx context.Context, fn func() error) error {
	if _, err := s.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	err := fn()
	if err == nil {
		if _, err = s.conn.ExecContext(ctx, "COMMIT"); err == nil {
			return nil
		}
		err = fmt.Errorf("commit transaction: %w", err)
	}
	// Some errors (a full disk) have rolled back already; then this one fails, and there is nothing to undo.
	_, _ = s.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	return err
}

// withWriter runs fn in a write transaction of its own, once nobody else writes.
func (s *SQLite) withWriter(ctx context.Context, fn func(*sql.Conn) error) error {
	select {
	case s.lead <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.lead }()
	return s.exclusively(context.WithoutCancel(ctx), func() error { return fn(s.conn) })
}
