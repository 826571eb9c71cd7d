package lines

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// missError ends a transaction that needs something that is not in memory: bringing it would hold others up. Retry
// brings it and begins again.
type missError struct{ object object }

func (m *missError) Error() string {
	return "what is needed is in cold storage, and has to be brought first"
}

// bringsMost is how often Retry begins again. A transaction needs few objects, and each time one is brought.
const bringsMost = 200

// Retry runs fn, and again after it brought what fn missed.
func (t *Tier) Retry(ctx context.Context, fn func() error) error {
	for range bringsMost {
		err := fn()
		m, missed := errors.AsType[*missError](err)
		if !missed {
			return err
		}
		if err := t.bring(ctx, m.object); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: too much of it is needed at once", server.ErrCold)
}

// bring brings an object into memory; of a file, all of it into the database.
func (t *Tier) bring(ctx context.Context, o object) (err error) {
	if o.stream != 0 {
		_, err = t.fetch(ctx, o)
		return err
	}
	for err == nil && o.id != "" {
		if err = t.returnObject(ctx, o); err == nil {
			o, err = coldChunk(ctx, t.db, o.owner, o.blob)
		}
	}
	return sqlstore.Wrap(err, "bring file back")
}

// fetch returns the bytes of an object; none if they are lost, or are not those that were written.
func (t *Tier) fetch(ctx context.Context, o object) ([]byte, error) {
	if data, ok := t.cache.find(o.id); ok && len(data) == 0 {
		t.cache.forget(o.id) // another process may have put it back
	}
	return t.cache.get(ctx, o.id, func(ctx context.Context) (data []byte, err error) {
		ctx, cancel := context.WithTimeout(ctx, readTime)
		defer cancel()
		data, err = t.read(ctx, t.name(o), o.size)
		if errors.Is(err, errNoObject) {
			return nil, t.missing(ctx, o)
		}
		if err == nil && !o.proves(data) {
			return nil, nil
		}
		return data, err
	})
}

// read returns an object of the location. One that is longer than it should be is cut behind that.
func (t *Tier) read(ctx context.Context, name string, size int64) (data []byte, err error) {
	err = t.use(func() (err error) {
		data, err = t.objects.Get(ctx, name, size+1)
		return err
	})
	return data, err
}

var errObjectDamaged = errors.New("the object is damaged")

func (o object) proves(data []byte) bool {
	sum := sha256.Sum256(data)
	return int64(len(data)) == o.size && bytes.Equal(sum[:], o.sha256)
}

// missing says why an object is not there. nil: it is lost.
func (t *Tier) missing(ctx context.Context, o object) error {
	in, err := t.uses(ctx, o)
	if err != nil {
		return err
	}
	if !in {
		return fmt.Errorf("%w: %w", server.ErrCold, sqlstore.ErrSwept)
	}
	return t.prove(ctx)
}

// uses reports whether something uses an object.
func (t *Tier) uses(ctx context.Context, o object) (bool, error) {
	in, err := sqlstore.Number(ctx, t.db, `SELECT 1 FROM cold_objects o`+ofObject+` AND `+inUse, o.key()...)
	return in > 0, sqlstore.Wrap(err, "look for object")
}

// lookAgain calls look, and again if what it found was moved meanwhile.
func lookAgain(look func() error) (err error) {
	for range 3 {
		if err = look(); !errors.Is(err, sqlstore.ErrSwept) {
			break
		}
	}
	return err
}

// prove returns nil if the location is that of this database.
func (t *Tier) prove(ctx context.Context) error {
	said, err := t.read(ctx, t.marker(), int64(len(t.id)))
	if errors.Is(err, errNoObject) || err == nil && string(said) != t.id {
		return fmt.Errorf("%w: %s has nothing of this database; is --blocks another place than before?",
			server.ErrCold, t.place)
	}
	return err
}

// doom notes, in the transaction that stops using all of an object or a part, that it is to be removed. Sweep brings
// the rest back before.
func doom(ctx context.Context, d sqlstore.Dialect, o object) error {
	_, err := d.Exec(ctx, `UPDATE cold_objects SET state = 2, at = ?`+ofObject, o.with(now())...)
	return sqlstore.Wrap(err, "note object to be removed")
}
