package sqlite

import (
	"context"
	"database/sql"

	"github.com/ccship/ccship/server/store/search"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// maskDatabase implements masks.Database.
type maskDatabase struct{ s *Store }

// Write implements masks.Database.
func (m maskDatabase) Write(ctx context.Context, fn func(sqlstore.Dialect) error) error {
	return m.s.Tier.Retry(ctx, func() error {
		return m.s.withWriter(ctx, func(c *sql.Conn) error {
			return securely(ctx, c, func() error { return fn(dialect{c}) })
		})
	})
}

// ClearDerived implements masks.Database. The index of texts keeps runs of three characters of what is removed until it
// is merged, which Scrub sees to.
func (m maskDatabase) ClearDerived(ctx context.Context, d sqlstore.Dialect, owner, stream int64) error {
	if _, err := d.Exec(ctx, `INSERT INTO scrub (due) VALUES (random())`); err != nil {
		return err
	}
	return search.ClearMasked(ctx, d, sqlstore.OwnedStream{Owner: owner, Stream: stream})
}
