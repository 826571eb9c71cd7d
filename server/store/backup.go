package store

import (
	"context"
	"database/sql"
	"fmt"
	"io"
)

// Backup implements server.Backuper: it writes the database's pages as of one moment. Lines are stored meanwhile; the
// log grows until the backup is done.
func (s *SQLite) Backup(ctx context.Context, to io.Writer, progress func(done, total int64)) error {
	// One statement sees one moment of the database.
	rows, err := s.read.QueryContext(ctx,
		`SELECT (SELECT count(*) FROM sqlite_dbpage), data FROM sqlite_dbpage ORDER BY pgno`)
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	defer rows.Close()
	if err := copyPages(rows, to, progress); err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	return nil
}

func copyPages(rows *sql.Rows, to io.Writer, progress func(done, total int64)) error {
	var done, pages int64
	for rows.Next() {
		var page sql.RawBytes
		if err := rows.Scan(&pages, &page); err != nil {
			return err
		}
		if _, err := to.Write(page); err != nil {
			return err
		}
		size := int64(len(page))
		if done++; progress != nil && (done%1024 == 0 || done == pages) {
			progress(done*size, pages*size)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if done != pages {
		return fmt.Errorf("%d of %d pages were read", done, pages)
	}
	return nil
}
