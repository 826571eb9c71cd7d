package sqlite

import (
	"archive/tar"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"

	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// Backup implements server.Backuper: it writes the database's pages as of one moment. Lines are stored meanwhile; the
// log grows until the backup is done. With objects in cold storage it is an archive of the database and of those.
func (s *Store) Backup(ctx context.Context, to io.Writer, progress func(done, total int64)) (err error) {
	release, err := s.Hold(ctx)
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	defer func() { err = errors.Join(err, release()) }()
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // it changes nothing
	return sqlstore.Wrap(s.backup(ctx, tx, to, progress), "back up")
}

// databaseEntry is the name of the database in an archive.
const databaseEntry = "server.db"

// backup writes what one transaction sees.
func (s *Store) backup(ctx context.Context, tx *sql.Tx, to io.Writer, progress func(done, total int64)) error {
	away, err := lines.ColdInUse(ctx, dialect{tx})
	if err != nil {
		return err
	}
	if len(away) == 0 {
		return pagesTo(ctx, tx, to, progress)
	}
	var size int64
	const query = `SELECT (SELECT count(*) FROM sqlite_dbpage) * page_size FROM pragma_page_size`
	err = tx.QueryRowContext(ctx, query).Scan(&size)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(to)
	err = archive.WriteHeader(&tar.Header{Name: databaseEntry, Mode: 0o600, Size: size, Typeflag: tar.TypeReg})
	if err == nil {
		err = pagesTo(ctx, tx, archive, progress)
	}
	if err == nil {
		err = s.CopyTo(ctx, archive, away)
	}
	if err != nil {
		return err
	}
	return archive.Close()
}

func pagesTo(ctx context.Context, tx *sql.Tx, to io.Writer, progress func(done, total int64)) error {
	rows, err := tx.QueryContext(ctx,
		`SELECT (SELECT count(*) FROM sqlite_dbpage), data FROM sqlite_dbpage ORDER BY pgno`)
	if err != nil {
		return err
	}
	defer rows.Close()
	return copyPages(rows, to, progress)
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
