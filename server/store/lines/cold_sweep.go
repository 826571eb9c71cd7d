package lines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// pagePending is how many objects are removed at a time.
const pagePending = 100

// Sweep implements server.Cooler: it removes objects that nothing uses any more, and those that a crash left behind.
// What is still used of one comes back into the database before. One that an open snapshot may show stays for a later
// sweep.
func (t *Tier) Sweep(ctx context.Context) error {
	t.sweeping.Lock()
	defer t.sweeping.Unlock()
	seen, wait := map[string]int64{}, sweepWait
	err := t.pending(ctx, doomed, math.MaxInt64, func(page []object) error {
		page, err := t.empty(ctx, page)
		if err != nil {
			return err
		}
		_, now, err := t.db.Snapshots(ctx)
		if err != nil {
			return err
		}
		oldest, err := t.oldest(ctx, now, &wait)
		for _, o := range page {
			if err != nil {
				return err
			}
			since, known := t.doomed[o.id]
			if !known {
				since = now
			}
			if o.stream != 0 && oldest < since { // no snapshot shows files
				seen[o.id] = since
				continue
			}
			err = t.remove(ctx, o)
		}
		return err
	})
	if err != nil {
		return err
	}
	t.doomed = seen
	return t.pending(ctx, writing, sqlstore.Micros(time.Now().Add(-abandoned)),
		func(page []object) (err error) {
			for _, o := range page {
				err = cmp.Or(err, t.remove(ctx, o))
			}
			return err
		})
}

// empty brings back what is still used of objects, and returns them without those of which it cannot: verify names the
// lines of what is damaged.
func (t *Tier) empty(ctx context.Context, page []object) (out []object, err error) {
	for _, o := range page {
		in, err := t.uses(ctx, o)
		if err == nil && in {
			err = t.returnObject(ctx, o)
		}
		switch {
		case err == nil:
			out = append(out, o)
		case !errors.Is(err, errObjectDamaged):
			return nil, err
		}
	}
	return out, nil
}

// sweepWait is how long a sweep waits for snapshots to be closed: most are open for milliseconds.
const sweepWait = 200 * time.Millisecond

// oldest is the number of the oldest open snapshot, once that is now or the wait is over.
func (t *Tier) oldest(ctx context.Context, now int64, wait *time.Duration) (oldest int64, err error) {
	const pause = 10 * time.Millisecond
	for {
		if oldest, _, err = t.db.Snapshots(ctx); err != nil || oldest >= now || *wait <= 0 {
			return oldest, err
		}
		*wait -= pause
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// pending calls each with objects that are in a state since before a time, a page at a time. None is while a backup
// reads them.
func (t *Tier) pending(ctx context.Context, state, before int64, each func(page []object) error) error {
	after := []any{state, before, 0, int64(math.MinInt64), ""}
	for {
		page, err := sqlstore.List(ctx, t.db, `SELECT `+objectColumns+` FROM cold_objects o
WHERE state <> 1 AND state = ? AND at < ? AND (owner, at, id) > (?, ?, ?)
AND NOT EXISTS (SELECT 1 FROM leases WHERE name LIKE ? AND until BETWEEN ? AND ?) ORDER BY owner, at, id LIMIT ?`,
			append(after, backingUp+"%", now(), now()+sqlstore.LongestLease.Microseconds(), pagePending),
			scanObject)
		if err != nil {
			return fmt.Errorf("look for cold objects: %w", err)
		}
		if len(page) == 0 {
			return nil
		}
		if err := each(page); err != nil || len(page) < pagePending {
			return err
		}
		last := page[len(page)-1]
		after = []any{state, before, last.owner, last.at, last.id}
	}
}

// undo removes an object that was written and will not be used.
func (t *Tier) undo(ctx context.Context, o object) error {
	noted, err := sqlstore.Number(ctx, t.db, `SELECT 1 FROM cold_objects`+ofObject, o.key()...)
	if err != nil {
		return fmt.Errorf("look for object: %w", err)
	}
	if noted == 0 { // writing it took so long that it was given up meanwhile
		return t.use(func() error { return t.objects.Delete(ctx, t.name(o)) })
	}
	return t.remove(ctx, o)
}

// remove removes an object unless it is in use: first from its location, then the note of it.
func (t *Tier) remove(ctx context.Context, o object) error {
	if err := t.lines.step("give object up"); err != nil {
		return err
	}
	var n int64
	err := t.db.Write(ctx, func(d sqlstore.Dialect) (err error) {
		n, err = d.Exec(ctx, `UPDATE cold_objects AS o SET state = 2`+ofObject+` AND NOT `+inUse, o.key()...)
		return err
	})
	if err != nil {
		return fmt.Errorf("note object to be removed: %w", err)
	}
	if n == 0 {
		return nil
	}
	if err := t.lines.step("remove object"); err != nil {
		return err
	}
	t.cache.forget(o.id)
	if err := t.use(func() error { return t.objects.Delete(ctx, t.name(o)) }); err != nil {
		return err
	}
	if err := t.lines.step("remove note of object"); err != nil {
		return err
	}
	err = t.db.Change(ctx, `DELETE FROM cold_objects`+ofObject+` AND state = 2`, o.key()...)
	return sqlstore.Wrap(err, "remove note of object")
}
