package lines

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// Return implements server.Cooler.
func (t *Tier) Return(ctx context.Context, since, until time.Time,
	told func(server.Returned)) (done server.Returned, err error) {
	for last := int64(0); ; {
		page, err := sqlstore.List(ctx, t.db, `
SELECT s.owner, s.id FROM streams s WHERE s.id > ? AND s.last_received >= ? AND s.last_received < ?
AND EXISTS (SELECT 1 FROM cold_blocks c WHERE c.owner = s.owner AND c.stream = s.id) ORDER BY s.id LIMIT ?`,
			[]any{last, since.UnixMicro(), until.UnixMicro(), pageStreams},
			func(row sqlstore.Scanner) (s objectStream, err error) { return s, row.Scan(&s.owner, &s.id) })
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

func (t *Tier) returnStream(ctx context.Context, s objectStream, done *server.Returned) error {
	all, err := sqlstore.List(ctx, t.db, `SELECT id, size, sha256 FROM cold_objects
WHERE owner = ? AND stream = ? AND state IN (1, 3) ORDER BY at, id`, []any{s.owner, s.id},
		func(row sqlstore.Scanner) (o object, err error) {
			o.owner, o.stream = s.owner, s.id
			return o, row.Scan(&o.id, &o.size, &o.sha256)
		})
	if err != nil {
		return fmt.Errorf("look for cold objects: %w", err)
	}
	for _, o := range all {
		switch err := t.returnObject(ctx, o); {
		case errors.Is(err, errObjectDamaged):
			done.Damaged++ // verify names its lines
		case err != nil:
			return err
		default:
			done.Objects, done.Bytes = done.Objects+1, done.Bytes+o.size
		}
	}
	return nil
}

// returnObject puts what is used of an object back into the blocks, in one transaction, after which the object is
// removed.
func (t *Tier) returnObject(ctx context.Context, o object) error {
	data, err := t.fetch(ctx, o)
	if errors.Is(err, sqlstore.ErrSwept) {
		return nil // returned by another
	}
	if err != nil {
		return err
	}
	return t.db.Write(ctx, func(d sqlstore.Dialect) error {
		_, err := o.lockStream(ctx, d)
		if err == nil {
			err = thaw(ctx, d, o, data)
		}
		if err == nil {
			err = t.lines.step("return object")
		}
		if err != nil {
			return err
		}
		_, err = d.Exec(ctx, `UPDATE streams SET cooled = -1 WHERE owner = ? AND id = ?`, o.owner, o.stream)
		return err
	})
}

// thaw puts an object's bytes back into the blocks that use them.
func thaw(ctx context.Context, d sqlstore.Dialect, o object, data []byte) error {
	all, err := sqlstore.List(ctx, d, `SELECT epoch, generation, first, place, size FROM cold_blocks
WHERE owner = ? AND stream = ? AND object = ?`, []any{o.owner, o.stream, o.id},
		func(row sqlstore.Scanner) (x part, err error) {
			x.at.Owner, x.at.Stream = o.owner, o.stream
			return x, row.Scan(&x.at.Epoch, &x.at.Generation, &x.first, &x.place, &x.size)
		})
	if err != nil {
		return fmt.Errorf("look for cold blocks: %w", err)
	}
	for _, x := range all {
		if x.place+x.size > int64(len(data)) {
			return errObjectDamaged
		}
		_, err := d.Exec(ctx, `UPDATE blocks SET data = ?`+ofPlace+` AND first = ?`,
			append([]any{data[x.place : x.place+x.size]}, x.at.args(x.first)...)...)
		if err != nil {
			return fmt.Errorf("bring block back: %w", err)
		}
	}
	_, err = d.Exec(ctx, `DELETE FROM cold_blocks WHERE owner = ? AND stream = ? AND object = ?`,
		o.owner, o.stream, o.id)
	if err != nil {
		return fmt.Errorf("bring block back: %w", err)
	}
	return doom(ctx, d, o)
}
