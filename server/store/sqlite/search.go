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
func (s *Store) Rank(ctx context.Context, scope server.Scope, a server.Ask) (server.Ranked, error) {
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

// TryLead implements sums.Database. There is only one writer.
func (t textDatabase) TryLead(context.Context, sqlstore.Dialect) (bool, error) { return true, nil }

// Hold implements sums.Database. There is only one writer.
func (t textDatabase) Hold(context.Context, sqlstore.Dialect, int64) (bool, error) { return true, nil }

// Free implements sums.Database.
func (t textDatabase) Free() string { return "" }

// Unsummed implements sums.Database.
func (t textDatabase) Unsummed() string { return `s.summed < 0` }

// Size implements sums.Database.
func (t textDatabase) Size() string {
	return `(SELECT CASE WHEN g.end_offset > 0 THEN g.end_offset ELSE g.bytes END
  FROM epochs e JOIN generations g ON g.epoch = e.id WHERE e.stream = s.id
  ORDER BY e.rank DESC, g.generation DESC LIMIT 1)`
}

// Lines implements search.Database.
func (t textDatabase) Lines(ctx context.Context, d sqlstore.Dialect, at search.Place, s server.Span,
	yield func(server.Line) error) error {
	return t.s.held.Read(ctx, d, lines.Place{Owner: at.Owner, Stream: at.Stream, Epoch: at.Epoch}, s, yield)
}

// OfSession implements search.Database.
func (t textDatabase) OfSession(f *sqlstore.Filter, session string) {
	f.Add(`(s.session_id = ? OR s.parent = ?)`, session, session)
}

// Lost implements search.Database.
func (t textDatabase) Lost() string {
	return `EXISTS (SELECT 1 FROM epochs e JOIN drops d ON d.epoch = e.id
  WHERE e.stream = s.id AND d.lines > 0)`
}

// Epochs implements search.Database.
func (t textDatabase) Epochs() string {
	return `SELECT e.stream, e.id, e.rank, e.name, g.generation, g.rewound_to
FROM epochs e JOIN generations g ON g.epoch = e.id WHERE`
}

// Sessions implements search.Database.
func (t textDatabase) Sessions(ctx context.Context, ids []int64) (map[int64]server.FoundSession, error) {
	return t.s.sessionsByID(ctx, ids)
}
