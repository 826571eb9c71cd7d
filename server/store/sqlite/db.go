package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/ccship/ccship/server"
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
