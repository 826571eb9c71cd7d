package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server/store/lines"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// coldDatabase implements cold.Database.
type coldDatabase struct{ s *Store }

// Write implements cold.Database.
func (c coldDatabase) Write(ctx context.Context, fn func(sqlstore.Dialect) error) error {
	ctx, cancel := context.WithTimeout(ctx, pgPatience)
	defer cancel()
	return c.s.inBackground(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, byKey); err != nil {
			return fmt.Errorf("begin transaction: %w", err)
		}
		return fn(dialect{tx})
	})
}

// Now implements cold.Database. The numbers of snapshots are those of transactions.
func (c coldDatabase) Now(ctx context.Context) (n int64, err error) {
	err = c.s.pool.QueryRow(ctx, `SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint`).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("number snapshots: %w", err)
	}
	return n, nil
}

// Oldest implements cold.Database. It knows of all servers on the database, and of replicas that send feedback.
func (c coldDatabase) Oldest(ctx context.Context) (n int64, err error) {
	err = c.s.pool.QueryRow(ctx, `SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint - coalesce((
  SELECT max(age(backend_xmin)) FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()
  AND (datname = current_database() AND backend_type = 'client backend' OR backend_type = 'walsender')), 0)`).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("look for snapshots: %w", err)
	}
	return n, nil
}

// openCold opens what is kept outside of the database.
func (s *Store) openCold(ctx context.Context, how sqlstore.Opening) (err error) {
	s.Tier, err = lines.OpenCold(ctx, lines.ColdOf{Reader: dialect{s.pool}, DB: coldDatabase{s}, Lines: s.held}, how)
	if err == nil {
		s.held.Keep(s.Tier)
	}
	return err
}

// Seal implements server.Sealer. A stream that is being written, or packed by another server, is left for later.
func (s *Store) Seal(ctx context.Context, before time.Time) (int64, error) {
	return s.sealer.Seal(ctx, dialect{s.pool}, before, func(at lines.Place, all bool) (made int, more bool, err error) {
		ctx, cancel := context.WithTimeout(ctx, pgPatience)
		defer cancel()
		err = s.withTx(ctx, func(tx pgx.Tx) error {
			made, more = 0, false
			if _, err := tx.Exec(ctx, byKey); err != nil {
				return fmt.Errorf("begin transaction: %w", err)
			}
			var id int64
			err := tx.QueryRow(ctx, `SELECT id FROM streams WHERE owner = $1 AND id = $2 FOR UPDATE SKIP LOCKED`,
				at.Owner, at.Stream).Scan(&id)
			if errors.Is(err, pgx.ErrNoRows) {
				return lines.ErrBusy
			}
			if err != nil {
				return fmt.Errorf("take stream: %w", err)
			}
			made, more, err = s.held.Seal(ctx, dialect{tx}, at, all)
			return err
		})
		return made, more, err
	})
}
