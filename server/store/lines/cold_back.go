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
	progress func(server.Returned)) (done server.Returned, err error) {
	for after := (object{}); ; {
		page, err := sqlstore.List(ctx, t.db, `SELECT `+objectColumns+` FROM cold_objects o
JOIN streams s ON s.owner = o.owner AND s.id = o.stream
WHERE o.state IN (1, 3) AND s.last_received >= ? AND s.last_received < ? AND (o.owner, o.stream, o.id) > (?, ?, ?)
ORDER BY o.owner, o.stream, o.id LIMIT ?`,
			[]any{since.UnixMicro(), until.UnixMicro(), after.owner, after.stream, after.id, pagePending}, scanObject)
		if err != nil {
			return done, fmt.Errorf("look for what is in cold storage: %w", err)
		}
		for _, after = range page {
			switch err := t.returnObject(ctx, after); {
			case errors.Is(err, errObjectDamaged):
				done.Damaged++ // verify names its lines
			case err != nil:
				return done, err
			default:
				done.Objects, done.Bytes = done.Objects+1, done.Bytes+after.size
			}
			progress(done)
		}
		if len(page) < pagePending {
			return done, t.Sweep(ctx)
		}
	}
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
