package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/lines"

	"github.com/ccship/ccship/server/store/search"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// retentionDatabase implements retention.Database.
type retentionDatabase struct{ s *Store }

// Write implements retention.Database.
func (r retentionDatabase) Write(ctx context.Context, fn func(sqlstore.Dialect) error) error {
	return r.s.Tier.Retry(ctx, func() error { return coldDatabase(r).Write(ctx, fn) })
}

// DropFromIndex implements retention.Database.
func (r retentionDatabase) DropFromIndex(ctx context.Context, d sqlstore.Dialect, owner, stream int64,
	how lines.IndexDrop) error {
	x := sqlstore.OwnedStream{Owner: owner, Stream: stream}
	if how.Forget {
		return search.ClearQuotes(ctx, d, x)
	}
	return search.ClearTexts(ctx, d, x, how.Again)
}

// SubtractUsage implements retention.Database.
func (r retentionDatabase) SubtractUsage(ctx context.Context, d sqlstore.Dialect, owner, stream int64) error {
	return removeAnswers(ctx, d.(dialect).db.(pgx.Tx), sqlstore.OwnedStream{Owner: owner, Stream: stream})
}

// Open implements retention.Database.
func (r retentionDatabase) Open(ctx context.Context, ref server.Ref) (server.Snapshot, error) {
	return r.s.Open(ctx, ref)
}

// noteRetired keeps what a copy knows of retired lines.
func noteRetired(ctx context.Context, tx pgx.Tx, at lines.Place, runs []*server.RetiredRun) error {
	for _, r := range runs {
		if err := lines.InsertRetired(ctx, dialect{tx}, lines.RetiredPlace(at), r); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, grow, at.Stream, at.Epoch, at.Generation, 0, r.Last+1, at.Owner); err != nil {
			return fmt.Errorf("write generation: %w", err)
		}
	}
	return nil
}

// Vacuum implements retention.Database. It has PostgreSQL use again what was removed, or with full give it back to the
// disk, which locks one table after the other. It passes over tables that are not of the role.
func (r retentionDatabase) Vacuum(ctx context.Context, full bool) (err error) {
	conn, err := pgx.ConnectConfig(ctx, r.s.direct)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	query := `VACUUM`
	if full {
		query = `VACUUM (FULL)`
	}
	for _, text := range []string{`SET statement_timeout = 0`, query} {
		if _, err := conn.Exec(ctx, text, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("vacuum: %w", err)
		}
	}
	return nil
}
