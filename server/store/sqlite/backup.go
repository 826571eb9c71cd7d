package sqlite

import (
	"archive/tar"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ccship/ccship/server"
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

const (
	// scrubPages is how many free pages one transaction overwrites: few enough that lines which arrive do not wait long.
	scrubPages = 1024
	// logTries is how often the log is tried to be emptied, for readers that have it open.
	logTries = 50
	logPause = 100 * time.Millisecond
)

// Scrub implements server.Masker. It merges the index, so that nothing remains of removed texts. If something was
// masked since the last Scrub, it overwrites the free pages of the file, and empties the log. If a reader keeps the
// log, the next call does all of it again.
func (s *Store) Scrub(ctx context.Context, progress func(done, total int64)) error {
	return sqlstore.Wrap(s.scrub(ctx, progress), "overwrite what was masked")
}

func (s *Store) scrub(ctx context.Context, progress func(done, total int64)) error {
	due, err := sqlstore.List(ctx, dialect{s.read}, `SELECT holder FROM leases WHERE name = 'scrub'`, nil,
		func(row sqlstore.Scanner) (due string, err error) { return due, row.Scan(&due) })
	if err == nil {
		err = s.Index.Purge(ctx)
	}
	if err != nil || len(due) == 0 {
		return err
	}
	if err := s.overwriteFree(ctx, progress); err != nil {
		return err
	}
	for try := 0; !s.emptyLog(ctx); try++ {
		if try == logTries {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(logPause):
		}
	}
	return s.withWriter(ctx, func(c *sql.Conn) error { // not what was masked meanwhile, also by another process
		_, err := c.ExecContext(ctx, `DELETE FROM leases WHERE name = 'scrub' AND holder = ?`, due[0])
		return err
	})
}

// overwriteFree overwrites the file's free pages: it fills them with zeros, and frees them again.
func (s *Store) overwriteFree(ctx context.Context, progress func(done, total int64)) error {
	total, err := s.freePages(ctx)
	if err != nil {
		return err
	}
	for done := int64(0); done < total; done += scrubPages {
		free, err := s.freePages(ctx)
		if err != nil {
			return err
		}
		if free == 0 || ctx.Err() != nil {
			break
		}
		err = s.withLazyWriter(ctx, func(c *sql.Conn) error {
			_, err := c.ExecContext(ctx, `INSERT INTO scrub_pages (zeros) VALUES (zeroblob(?))`,
				min(free, scrubPages)*(pageSize-4))
			return err
		})
		if err != nil {
			return err
		}
		progress(min(done+scrubPages, total), total)
	}
	return s.withLazyWriter(context.WithoutCancel(ctx), func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, `DELETE FROM scrub_pages`)
		return err
	})
}

func (s *Store) freePages(ctx context.Context) (n int64, err error) {
	return n, s.read.QueryRowContext(ctx, `PRAGMA freelist_count`).Scan(&n)
}

// Forget implements server.Library. Removed data is overwritten in the file.
func (s *Store) Forget(ctx context.Context, scope server.Scope, session string, owner int64,
	at time.Time) (server.Forgotten, error) {
	var out server.Forgotten
	err := s.withWriter(ctx, func(c *sql.Conn) error {
		streams, err := sqlstore.Forgettables(ctx, dialect{c}, scope, session, owner)
		if err == nil {
			err = sqlstore.OneOwner(ctx, dialect{c}, session, streams)
		}
		if err == nil && len(streams) == 0 {
			err = server.ErrNotFound
		}
		if err != nil {
			return err
		}
		return securely(ctx, c, func() error {
			out, err = s.forget(ctx, c, streams, session, at)
			return err
		})
	})
	if err != nil {
		return server.Forgotten{}, fmt.Errorf("forget session %q: %w", session, err)
	}
	s.emptyLog(ctx)
	return out, nil
}

// securely runs fn, and overwrites what it removes.
func securely(ctx context.Context, c *sql.Conn, fn func() error) error {
	if _, err := c.ExecContext(ctx, `PRAGMA secure_delete = ON`); err != nil {
		return err
	}
	err := fn()
	_, back := c.ExecContext(ctx, `PRAGMA secure_delete = FAST`)
	return errors.Join(err, back)
}

// emptyLog empties the write-ahead log, and reports whether it could. While a reader is active that is impossible; then
// later writes do it.
func (s *Store) emptyLog(ctx context.Context) bool {
	select {
	case s.queue.Lead <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	defer func() { <-s.queue.Lead }()
	ctx = context.WithoutCancel(ctx)
	busy := int64(1)
	_, err := s.conn.ExecContext(ctx, `PRAGMA busy_timeout = 0`)
	if err == nil {
		var log, done int64
		err = s.conn.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &log, &done)
	}
	_, back := s.conn.ExecContext(ctx, fmt.Sprintf(`PRAGMA busy_timeout = %d`, busyTimeout))
	return errors.Join(err, back) == nil && busy == 0
}

// forget removes streams and leaves a tombstone for each owner.
func (s *Store) forget(ctx context.Context, c *sql.Conn, streams []sqlstore.OwnedStream, session string,
	at time.Time) (server.Forgotten, error) {
	out := server.Forgotten{Owner: streams[0].Owner, SessionID: session, At: sqlstore.Moment(sqlstore.Micros(at))}
	for _, x := range streams {
		lines, err := s.lines.Forget(ctx, dialect{c}, x)
		if err != nil {
			return out, err
		}
		out.Lines += lines
		_, err = c.ExecContext(ctx, `
INSERT INTO forgotten (owner, session_key, session_id, at, lines) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET at = excluded.at, lines = lines + excluded.lines`, x.Owner, sqlstore.Key(session),
			sqlstore.CleanText(session), sqlstore.Micros(at), lines)
		if err != nil {
			return out, fmt.Errorf("leave note: %w", err)
		}
	}
	return out, nil
}
