package sqlite

import (
	"context"
	"fmt"
	"os"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// Sizes implements server.Sizer: the database's file and its log.
func (s *Store) Sizes(ctx context.Context) (server.Sizes, error) {
	var out server.Sizes
	if err := s.read.QueryRowContext(ctx, `SELECT count(*) FROM streams`).Scan(&out.Streams); err != nil {
		return out, fmt.Errorf("count streams: %w", err)
	}
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(s.path + suffix)
		if err == nil {
			out.Bytes += info.Size()
		} else if !os.IsNotExist(err) {
			return out, fmt.Errorf("measure store: %w", err)
		}
	}
	return out, nil
}

// Check reads every page and every index, and calls problem for each defect.
func (s *Store) Check(ctx context.Context, problem func(string)) error {
	rows, err := s.read.QueryContext(ctx, `PRAGMA integrity_check`)
	if err != nil {
		return fmt.Errorf("check database: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var found string
		if err := rows.Scan(&found); err != nil {
			return fmt.Errorf("check database: %w", err)
		}
		if found != "ok" {
			problem(found)
		}
	}
	return sqlstore.Wrap(rows.Err(), "check database")
}
