package cold

import (
	"context"
	"fmt"
	"time"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// pagePending is how many objects are removed at a time.
const pagePending = 100

// Sweep implements server.Cooler: it removes objects that nothing uses any more, and those that a crash left behind.
func (t *Tier) Sweep(ctx context.Context) error {
	for {
		list, err := t.pending(ctx)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, o := range list {
			if err := t.remove(ctx, o); err != nil {
				return err
			}
		}
		if len(list) < pagePending {
			return nil
		}
	}
}

// pending are objects to be removed. None is while a backup reads them.
func (t *Tier) pending(ctx context.Context) ([]object, error) {
	list, err := sqlstore.List(ctx, t.reader, `SELECT owner, stream, blob, id FROM cold_objects
WHERE state <> 1 AND (state = 2 OR at < ?) AND NOT EXISTS (SELECT 1 FROM leases WHERE name LIKE ? AND until >= ?)
ORDER BY owner, at LIMIT ?`, []any{sqlstore.Micros(time.Now().Add(-abandoned)), backingUp + "%", now(), pagePending},
		func(row sqlstore.Scanner) (o object, err error) {
			return o, row.Scan(&o.owner, &o.stream, &o.blob, &o.id)
		})
	if err != nil {
		return nil, fmt.Errorf("look for cold objects: %w", err)
	}
	return list, nil
}

// undo removes an object that was written and will not be used.
func (t *Tier) undo(ctx context.Context, o object) error {
	noted := false
	err := t.reader.Query(ctx, `SELECT 1 FROM cold_objects`+ofObject, o.key(),
		func(sqlstore.Scanner) error { noted = true; return nil })
	if err != nil {
		return fmt.Errorf("look for object: %w", err)
	}
	if !noted { // writing it took so long that it was given up meanwhile
		return t.use(func() error { return t.objects.Delete(ctx, t.name(o)) })
	}
	return t.remove(ctx, o)
}

// remove removes an object unless it is in use: first from its place, then the note of it.
func (t *Tier) remove(ctx context.Context, o object) error {
	if err := t.step("give object up"); err != nil {
		return err
	}
	var n int64
	err := t.db.Write(ctx, func(d sqlstore.Dialect) (err error) {
		n, err = d.Exec(ctx, `UPDATE cold_objects SET state = 2`+ofObject+` AND state <> 1`, o.key()...)
		return err
	})
	if err != nil {
		return fmt.Errorf("note object to be removed: %w", err)
	}
	if n == 0 {
		return nil
	}
	if err := t.step("remove object"); err != nil {
		return err
	}
	t.cache.forget(o.id)
	if err := t.use(func() error { return t.objects.Delete(ctx, t.name(o)) }); err != nil {
		return err
	}
	if err := t.step("remove note of object"); err != nil {
		return err
	}
	err = t.db.Write(ctx, func(d sqlstore.Dialect) error {
		_, err := d.Exec(ctx, `DELETE FROM cold_objects`+ofObject+` AND state = 2`, o.key()...)
		return err
	})
	if err != nil {
		return fmt.Errorf("remove note of object: %w", err)
	}
	return nil
}

// Remove implements lines.Cold.
func (t *Tier) Remove(ctx context.Context, d sqlstore.Dialect, owner, stream int64) error {
	// What is being written stays noted until its writer finds the stream gone.
	_, err := d.Exec(ctx, `UPDATE cold_objects SET state = 2, at = ? WHERE owner = ? AND stream = ? AND state = 1`,
		now(), owner, stream)
	for _, table := range []string{"cold_blocks", "cold_streams"} {
		if err == nil {
			_, err = d.Exec(ctx, `DELETE FROM `+table+` WHERE owner = ? AND stream = ?`, owner, stream)
		}
	}
	if err != nil {
		return fmt.Errorf("remove cold blocks: %w", err)
	}
	return nil
}
