package sqlite

import (
	"context"
	"fmt"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/search"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// retentionDatabase implements retention.Database.
type retentionDatabase struct{ s *Store }

// Write implements retention.Database.
func (r retentionDatabase) Write(ctx context.Context, fn func(sqlstore.Dialect) error) error {
	return r.s.Tier.Retry(ctx, func() error { return r.s.packer.Write(ctx, fn) })
}

// DropFromIndex implements retention.Database. The index of texts keeps runs of three characters of what is removed
// until it is merged, which Scrub sees to.
func (r retentionDatabase) DropFromIndex(ctx context.Context, d sqlstore.Dialect, owner, stream int64,
	how lines.IndexDrop) error {
	if _, err := d.Exec(ctx, `INSERT INTO scrub (due) VALUES (random())`); err != nil {
		return err
	}
	x := sqlstore.OwnedStream{Owner: owner, Stream: stream}
	if how.Forget {
		return search.ClearQuotes(ctx, d, x)
	}
	return search.ClearTexts(ctx, d, x, how.Again)
}

// SubtractUsage implements retention.Database.
func (r retentionDatabase) SubtractUsage(ctx context.Context, _ sqlstore.Dialect, owner, stream int64) error {
	return removeAnswers(ctx, r.s.conn, sqlstore.OwnedStream{Owner: owner, Stream: stream})
}

// Open implements retention.Database.
func (r retentionDatabase) Open(ctx context.Context, ref server.Ref) (server.Snapshot, error) {
	return r.s.Open(ctx, ref)
}

// Vacuum implements retention.Database. It writes the file anew without its free pages, and empties the log. A caller
// that stores waits.
func (r retentionDatabase) Vacuum(ctx context.Context, _ bool) error {
	s := r.s
	select {
	case s.queue.Lead <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	_, err := s.conn.ExecContext(ctx, `VACUUM`)
	<-s.queue.Lead
	if err != nil {
		return fmt.Errorf("vacuum: %w", err)
	}
	s.emptyLog(ctx)
	return nil
}
