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

// scrubDue returns random numbers of what was masked since the last Scrub. Another process may scrub too: each removes
// only the numbers that it began with.
func (s *Store) scrubDue(ctx context.Context) ([]int64, error) {
	return sqlstore.List(ctx, dialect{s.read}, `SELECT due FROM scrub`, nil,
		func(row sqlstore.Scanner) (due int64, err error) { return due, row.Scan(&due) })
}

// Scrub implements masks.Database. It merges the index, so that nothing remains of removed texts, overwrites the free
// pages of the file, and empties the log. If a reader keeps the log, the next call does all of it again.
func (m maskDatabase) Scrub(ctx context.Context, progress func(done, total int64)) error {
	due, err := m.s.scrubDue(ctx)
	if err != nil || len(due) == 0 {
		return err
	}
	if err := m.s.texts.Purge(ctx); err != nil {
		return err
	}
	if err := m.s.overwriteFree(ctx, progress); err != nil {
		return err
	}
	for try := 0; !m.s.emptyLog(ctx); try++ {
		if try == logTries {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(logPause):
		}
	}
	return m.s.withWriter(ctx, func(c *sql.Conn) error {
		for _, n := range due {
			if _, err := c.ExecContext(ctx, `DELETE FROM scrub WHERE due = ?`, n); err != nil {
				return err
			}
		}
		return nil
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
