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
func (s *Store) Rank(ctx context.Context, scope server.Scope, a server.Ask) (server.Ranked, error) {
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

// TryLead implements sums.Database.
func (t textDatabase) TryLead(ctx context.Context, d sqlstore.Dialect) (bool, error) {
	return tryLock(ctx, d, lockSums, 0)
}

// Hold implements sums.Database. Who waited for one owner while it holds another could wait for ever.
func (t textDatabase) Hold(ctx context.Context, d sqlstore.Dialect, owner int64) (bool, error) {
	return tryLock(ctx, d, lockOwner, owner)
}

// tryLock takes an advisory lock until the transaction ends, unless another has it.
func tryLock(ctx context.Context, d sqlstore.Dialect, class int32, id int64) (free bool, err error) {
	err = d.Query(ctx, `SELECT pg_try_advisory_xact_lock(?, ?)`, []any{class, int32(id)},
		func(row sqlstore.Scanner) error { return row.Scan(&free) })
	return free, err
}

// Free implements sums.Database.
func (t textDatabase) Free() string { return ` FOR UPDATE SKIP LOCKED` }

// Unsummed implements sums.Database.
func (t textDatabase) Unsummed() string { return `s.summed <> s.version` }

// Size implements sums.Database.
func (t textDatabase) Size() string {
	return `(SELECT CASE WHEN n.end_offset > 0 THEN n.end_offset ELSE n.bytes END FROM generations n
  WHERE n.owner = s.owner AND n.stream = s.id ORDER BY n.epoch DESC, n.generation DESC LIMIT 1)`
}

// Lines implements search.Database.
func (t textDatabase) Lines(ctx context.Context, d sqlstore.Dialect, at search.Place, s server.Span,
	yield func(server.Line) error) error {
	return t.s.held.Read(ctx, d, lines.Place{Owner: at.Owner, Stream: at.Stream, Epoch: at.Epoch}, s, yield)
}

// OfSession implements search.Database.
func (t textDatabase) OfSession(f *sqlstore.Filter, session string) { filterSession(f, session, true) }

// Lost implements search.Database.
func (t textDatabase) Lost() string {
	return `EXISTS (SELECT 1 FROM drops d
  WHERE d.owner = s.owner AND d.stream = s.id AND d.lines > 0)`
}

// Epochs implements search.Database.
func (t textDatabase) Epochs() string {
	return `SELECT e.stream, e.rank, e.rank, e.name, g.generation, g.rewound_to
FROM epochs e JOIN generations g ON g.owner = e.owner AND g.stream = e.stream AND g.epoch = e.rank WHERE`
}

// Sessions implements search.Database.
func (t textDatabase) Sessions(ctx context.Context, ids []int64) (map[int64]server.FoundSession, error) {
	return t.s.sessionsByID(ctx, ids)
}

// filterSession lets through the streams s of a session, and of its agents.
func filterSession(f *sqlstore.Filter, session string, agents bool) {
	if !agents {
		f.Add(`s.session_key = ?`, sqlstore.Key(session))
		return
	}
	f.Add(`(s.session_key = ? OR (hashtextextended(s.parent, 0) = hashtextextended(?, 0) AND s.parent = ?))`,
		sqlstore.Key(session), session, session)
}
