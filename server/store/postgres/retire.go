package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

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
