package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/search"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// Search implements server.Library.
func (s *Store) Search(ctx context.Context, scope server.Scope, q server.SearchQuery) (server.Hits, error) {
	return s.texts.Search(ctx, scope, q)
}

// Rank implements server.Library.
func (s *Store) Rank(ctx context.Context, scope server.Scope, a server.RankQuery) (server.Ranked, error) {
	return s.texts.Rank(ctx, scope, a)
}

// textDatabase implements search.Database and sums.Database.
type textDatabase struct{ s *Store }

// Read implements search.Database.
func (t textDatabase) Read(ctx context.Context, fn func(sqlstore.Dialect) error) error {
	conn, err := t.s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	_, err = conn.Exec(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return err
	}
	err = fn(dialect{conn})
	_, end := conn.Exec(context.WithoutCancel(ctx), `ROLLBACK`)
	if err != nil {
		return err // a connection that is broken fails to roll back too
	}
	return end
}

// Write implements search.Database.
func (t textDatabase) Write(ctx context.Context, fn func(sqlstore.Dialect) error) error {
	return t.s.withLazyTx(ctx, func(tx pgx.Tx) error { return fn(dialect{tx}) })
}

// Lines implements search.Database.
func (t textDatabase) Lines(ctx context.Context, d sqlstore.Dialect, at search.Place, s server.Span,
	yield func(server.Line) error) error {
	return t.s.held.Read(ctx, d, lines.Place{Owner: at.Owner, Stream: at.Stream, Epoch: at.Epoch}, s, yield)
}

// Sessions implements search.Database.
func (t textDatabase) Sessions(ctx context.Context, ids []int64) (map[int64]server.FoundSession, error) {
	return t.s.ByID(ctx, ids)
}
