package sqlite

import (
	"context"
	"database/sql"
	"errors"

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
	conn, err := t.s.read.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer t.s.numbers.take()()
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	err = fn(dialect{conn})
	_, end := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	return errors.Join(err, end)
}

// Write implements search.Database. It waits while lines are being stored, so that it does not delay them.
func (t textDatabase) Write(ctx context.Context, fn func(sqlstore.Dialect) error) error {
	if err := t.s.derived.wait(ctx, t.s.idle); err != nil {
		return err
	}
	return t.s.withLazyWriter(ctx, func(c *sql.Conn) error { return fn(dialect{c}) })
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
