package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/lines"
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
