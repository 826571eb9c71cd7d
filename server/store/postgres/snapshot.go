package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

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
