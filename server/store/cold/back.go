package cold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// Return implements server.Cooler.
func (t *Tier) Return(ctx context.Context, since, until time.Time,
	told func(server.Returned)) (done server.Returned, err error) {
	for last := int64(0); ; {
		page, err := sqlstore.List(ctx, t.reader, `
SELECT s.owner, s.id FROM streams s WHERE s.id > ? AND s.last_received >= ? AND s.last_received < ?
AND EXISTS (SELECT 1 FROM cold_blocks c WHERE c.owner = s.owner AND c.stream = s.id) ORDER BY s.id LIMIT ?`,
			[]any{last, since.UnixMicro(), until.UnixMicro(), pageStreams},
			func(row sqlstore.Scanner) (s stream, err error) { return s, row.Scan(&s.owner, &s.id) })
		if err != nil {
			return done, fmt.Errorf("look for what is in cold storage: %w", err)
		}
		for _, s := range page {
			if err := t.returnStream(ctx, s, &done); err != nil {
				return done, err
			}
			told(done)
			last = s.id
		}
		if len(page) < pageStreams {
			return done, t.Sweep(ctx)
		}
	}
}

// away is an object of blocks, and one of them.
type away struct {
	at          lines.Place
	first, size int64
}

func (t *Tier) returnStream(ctx context.Context, s stream, done *server.Returned) error {
	all, err := sqlstore.List(ctx, t.reader, `SELECT epoch, generation, min(first), CAST(sum(size) AS bigint)
FROM cold_blocks WHERE owner = ? AND stream = ? GROUP BY epoch, generation, object ORDER BY 1, 2, 3`,
		[]any{s.owner, s.id}, func(row sqlstore.Scanner) (a away, err error) {
			a.at.Owner, a.at.Stream = s.owner, s.id
			return a, row.Scan(&a.at.Epoch, &a.at.Generation, &a.first, &a.size)
		})
	if err != nil {
		return fmt.Errorf("look for cold blocks: %w", err)
	}
	for _, a := range all {
		switch err := t.returnObject(ctx, a); {
		case errors.Is(err, errDamaged):
			done.Damaged++ // verify names its lines
		case err != nil:
			return err
		default:
			done.Objects, done.Bytes = done.Objects+1, done.Bytes+a.size
		}
	}
	return nil
}

// returnObject puts an object's bytes back into the blocks, in one transaction, after which the object is removed.
func (t *Tier) returnObject(ctx context.Context, a away) error {
	return t.Retry(ctx, func() error {
		return t.db.Write(ctx, func(d sqlstore.Dialect) error {
			err := d.Query(ctx, `SELECT id FROM streams WHERE owner = ? AND id = ?`+d.Lock(), []any{a.at.Owner, a.at.Stream},
				func(sqlstore.Scanner) error { return nil })
			if err == nil {
				err = t.Thaw(ctx, d, a.at, a.first)
			}
			if err == nil {
				err = t.step("return object")
			}
			if err != nil {
				return err
			}
			_, err = d.Exec(ctx, `DELETE FROM cold_streams WHERE owner = ? AND stream = ?`, a.at.Owner, a.at.Stream)
			return err
		})
	})
}
