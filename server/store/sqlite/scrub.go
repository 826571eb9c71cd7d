package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/ccship/ccship/server/store/sqlstore"
)

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
