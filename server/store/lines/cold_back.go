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
WHERE `+inUse+` AND s.last_received >= ? AND s.last_received < ? AND (o.owner, o.stream, o.id) > (?, ?, ?)
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

// returnObject puts what is used of an object back where it came from, in one transaction, after which the object is
// removed.
func (t *Tier) returnObject(ctx context.Context, o object) error {
	data, err := t.fetch(ctx, o)
	if errors.Is(err, sqlstore.ErrSwept) {
		return nil // returned by another
	}
	if err == nil && len(data) == 0 {
		err = errObjectDamaged
	}
	if err != nil {
		return err
	}
	return t.db.Write(ctx, func(d sqlstore.Dialect) error {
		thaw := o.thawBlocks
		if o.stream == 0 {
			thaw = o.thawChunk
		}
		if err := thaw(ctx, d, data); err != nil {
			return fmt.Errorf("bring back what was cold: %w", err)
		}
		if err := t.lines.step("return object"); err != nil {
			return err
		}
		return doom(ctx, d, o)
	})
}

// thawBlocks puts an object's bytes back into the blocks that use them.
func (o object) thawBlocks(ctx context.Context, d sqlstore.Dialect, data []byte) error {
	if there, err := o.lockStream(ctx, d); err != nil || !there {
		return err
	}
	// coalesce says which type the bytes have.
	_, err := d.Exec(ctx, `UPDATE blocks SET
  data = substr(coalesce(?, data), CAST(place + 1 AS integer), CAST(size AS integer)), object = '', place = 0, size = 0
WHERE owner = ? AND stream = ? AND object = ?`, data, o.owner, o.stream, o.id)
	if err != nil {
		return err
	}
	_, err = d.Exec(ctx, `UPDATE streams SET cooled = -1 WHERE owner = ? AND id = ?`, o.owner, o.stream)
	return err
}

// thawChunk puts an object's bytes back into the file that uses them. It counts as new, so that it stays a while.
func (o object) thawChunk(ctx context.Context, d sqlstore.Dialect, data []byte) error {
	_, err := d.Exec(ctx, `UPDATE blobs SET touched = ? WHERE owner = ? AND id = ?`, now(), o.owner, o.blob)
	if err == nil {
		_, err = d.Exec(ctx, `UPDATE blob_chunks SET data = ?, object = '' WHERE owner = ? AND blob = ? AND object = ?`,
			data, o.owner, o.blob, o.id)
	}
	return err
}
