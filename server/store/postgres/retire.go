package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/lines"
)

// noteRetired keeps what a copy knows of retired lines.
func noteRetired(ctx context.Context, tx pgx.Tx, at lines.Place, runs []*server.RetiredRun) error {
	for _, r := range runs {
		if err := lines.InsertRetired(ctx, dialect{tx}, at, r); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, grow, at.Stream, at.Epoch, at.Generation, 0, r.Last+1, at.Owner); err != nil {
			return fmt.Errorf("write generation: %w", err)
		}
	}
	return nil
}

// Vacuum implements server.Retention. It has PostgreSQL use again what was removed, or with full give it back to the
// disk, which locks one table after the other. It passes over tables that are not of the role.
func (s *Store) Vacuum(ctx context.Context, full bool) (err error) {
	conn, err := pgx.ConnectConfig(ctx, s.direct)
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
			return fmt.Errorf("give space back: %w", err)
		}
	}
	return nil
}
