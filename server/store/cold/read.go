package cold

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/block"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/objects"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// MissError ends a transaction that needs something that is not at hand: bringing it would hold others up. Retry
// brings it and begins again.
type MissError struct{ object object }

func (m *MissError) Error() string {
	return "what is needed is in cold storage, and has to be brought first"
}

// bringsMost is how often Retry begins again. A transaction needs few objects, and each time one is brought.
const bringsMost = 200

// Retry runs fn, and again after it brought what fn missed.
func (t *Tier) Retry(ctx context.Context, fn func() error) error {
	for range bringsMost {
		err := fn()
		m, missed := errors.AsType[*MissError](err)
		if !missed {
			return err
		}
		if err := t.bring(ctx, m.object); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: too much of it is needed at once", server.ErrCold)
}

func (t *Tier) bring(ctx context.Context, o object) error {
	if o.stream == 0 {
		return t.thawFile(ctx, o.owner, o.blob)
	}
	_, err := t.fetch(ctx, o)
	return err
}

// fetch returns the bytes of an object; none if they are lost, or are not those that were written.
func (t *Tier) fetch(ctx context.Context, o object) ([]byte, error) {
	if data, ok := t.cache.find(o.id); ok && len(data) == 0 {
		t.cache.forget(o.id) // somebody may have put it back
	}
	return t.cache.get(ctx, o.id, func(ctx context.Context) (data []byte, err error) {
		ctx, cancel := context.WithTimeout(ctx, readTime)
		defer cancel()
		err = t.use(func() (err error) {
			data, err = t.objects.Get(ctx, t.name(o), o.size+1)
			return err
		})
		if errors.Is(err, objects.ErrMissing) {
			return nil, t.missing(ctx, o)
		}
		if err == nil && !o.proves(data) {
			return nil, nil
		}
		return data, err
	})
}

var errDamaged = errors.New("the object is damaged")

func (o object) proves(data []byte) bool {
	sum := sha256.Sum256(data)
	return int64(len(data)) == o.size && bytes.Equal(sum[:], o.sha256)
}

// missing says why an object is not there. nil: it is lost.
func (t *Tier) missing(ctx context.Context, o object) error {
	in := false
	err := t.reader.Query(ctx, `SELECT state = 1 FROM cold_objects`+ofObject, o.key(),
		func(row sqlstore.Scanner) error { return row.Scan(&in) })
	if err != nil {
		return fmt.Errorf("look for object: %w", err)
	}
	if !in {
		return fmt.Errorf("%w: what was read changed meanwhile; try again", server.ErrCold)
	}
	return t.prove(ctx)
}

// prove returns nil if the place is that of this database.
func (t *Tier) prove(ctx context.Context) error {
	var said []byte
	err := t.use(func() (err error) {
		said, err = t.objects.Get(ctx, t.marker(), int64(len(t.id))+1)
		return err
	})
	if errors.Is(err, objects.ErrMissing) || err == nil && string(said) != t.id {
		return fmt.Errorf("%w: %s has nothing of this database; is --blocks another place than before?",
			server.ErrCold, t.place)
	}
	return err
}

// located is where the data of a block is.
type located struct {
	first, place, size int64
	object             object
}

// locate finds the data of blocks of a place, from first to last.
func locate(ctx context.Context, d sqlstore.Dialect, at lines.Place, first, last int64) (map[int64]located, error) {
	out := map[int64]located{}
	err := d.Query(ctx, `
SELECT c.first, c.place, c.size, o.id, o.size, o.sha256 FROM cold_blocks c
JOIN cold_objects o ON o.owner = c.owner AND o.stream = c.stream AND o.blob = 0 AND o.id = c.object
WHERE c.owner = ? AND c.stream = ? AND c.epoch = ? AND c.generation = ? AND c.first >= ? AND c.first <= ?`,
		[]any{at.Owner, at.Stream, at.Epoch, at.Generation, first, last}, func(row sqlstore.Scanner) error {
			x := located{object: object{owner: at.Owner, stream: at.Stream}}
			err := row.Scan(&x.first, &x.place, &x.size, &x.object.id, &x.object.size, &x.object.sha256)
			out[x.first] = x
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("look for cold blocks: %w", err)
	}
	return out, nil
}

// Load implements lines.Cold. What is lost or damaged stays without data.
func (t *Tier) Load(ctx context.Context, d sqlstore.Dialect, at lines.Place, list []block.Block, wait bool) error {
	var first, last int64 = -1, -1
	for i := range list {
		if list[i].Away() {
			if first < 0 {
				first = list[i].First
			}
			last = list[i].First
		}
	}
	if first < 0 {
		return nil
	}
	where, err := locate(ctx, d, at, first, last)
	if err != nil {
		return err
	}
	for i := range list {
		x, ok := where[list[i].First]
		if !list[i].Away() || !ok {
			continue
		}
		data, err := t.data(ctx, x.object, wait)
		if err != nil {
			return err
		}
		if x.place+x.size <= int64(len(data)) {
			list[i].Data = data[x.place : x.place+x.size : x.place+x.size]
		}
	}
	return nil
}

// data returns an object's bytes. Who does not wait gets a *MissError instead of what is not at hand.
func (t *Tier) data(ctx context.Context, o object, wait bool) ([]byte, error) {
	if wait {
		return t.fetch(ctx, o)
	}
	if data, ok := t.cache.find(o.id); ok {
		return data, nil
	}
	return nil, &MissError{o}
}

// Thaw implements lines.Cold.
func (t *Tier) Thaw(ctx context.Context, d sqlstore.Dialect, at lines.Place, first int64) error {
	where, err := locate(ctx, d, at, first, first)
	if err != nil || len(where) == 0 {
		return err
	}
	o := where[first].object
	data, err := t.data(ctx, o, false)
	if err != nil {
		return err
	}
	all, err := sqlstore.List(ctx, d, `SELECT first, place, size FROM cold_blocks
WHERE owner = ? AND stream = ? AND epoch = ? AND generation = ? AND object = ?`,
		[]any{at.Owner, at.Stream, at.Epoch, at.Generation, o.id},
		func(row sqlstore.Scanner) (x located, err error) { return x, row.Scan(&x.first, &x.place, &x.size) })
	if err != nil {
		return fmt.Errorf("look for cold blocks: %w", err)
	}
	for _, x := range all {
		if x.place+x.size > int64(len(data)) {
			return errDamaged
		}
		_, err := d.Exec(ctx, `UPDATE blocks SET data = ?
WHERE owner = ? AND stream = ? AND epoch = ? AND generation = ? AND first = ?`,
			data[x.place:x.place+x.size], at.Owner, at.Stream, at.Epoch, at.Generation, x.first)
		if err != nil {
			return fmt.Errorf("bring block back: %w", err)
		}
	}
	_, err = d.Exec(ctx, `DELETE FROM cold_blocks
WHERE owner = ? AND stream = ? AND epoch = ? AND generation = ? AND object = ?`,
		at.Owner, at.Stream, at.Epoch, at.Generation, o.id)
	if err != nil {
		return fmt.Errorf("bring block back: %w", err)
	}
	return doom(ctx, d, o)
}

// Release implements lines.Cold. Other blocks of the same object come back into the database.
func (t *Tier) Release(ctx context.Context, d sqlstore.Dialect, at lines.Place, first int64) error {
	where, err := locate(ctx, d, at, first, first)
	if err != nil || len(where) == 0 {
		return err
	}
	o, others := where[first].object, int64(0)
	err = d.Query(ctx, `SELECT count(*) FROM cold_blocks WHERE owner = ? AND stream = ? AND object = ?`,
		[]any{at.Owner, at.Stream, o.id}, func(row sqlstore.Scanner) error { return row.Scan(&others) })
	if err != nil {
		return fmt.Errorf("look for cold blocks: %w", err)
	}
	if others > 1 {
		return t.Thaw(ctx, d, at, first)
	}
	_, err = d.Exec(ctx, `DELETE FROM cold_blocks
WHERE owner = ? AND stream = ? AND epoch = ? AND generation = ? AND first = ?`,
		at.Owner, at.Stream, at.Epoch, at.Generation, first)
	if err != nil {
		return fmt.Errorf("release block: %w", err)
	}
	return doom(ctx, d, o)
}

// doom notes, in the transaction that stops using it, that an object is to be removed.
func doom(ctx context.Context, d sqlstore.Dialect, o object) error {
	_, err := d.Exec(ctx, `UPDATE cold_objects SET state = 2, at = ?`+ofObject, o.with(now())...)
	if err != nil {
		return fmt.Errorf("note object to be removed: %w", err)
	}
	return nil
}
