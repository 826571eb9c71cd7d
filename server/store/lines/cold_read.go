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
	in, err := sqlstore.Number(ctx, t.db, `SELECT 1 FROM cold_objects`+ofObject+` AND state IN (1, 3)`, o.key()...)
	if err != nil {
		return fmt.Errorf("look for object: %w", err)
	}
	if in == 0 {
		return fmt.Errorf("%w: %w", server.ErrCold, sqlstore.ErrSwept)
	}
	return t.prove(ctx)
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

// Release has the data of a block removed that uses it no more. It does not read it: what else the object has comes
// back into the database when Sweep removes it.
func (t *Tier) Release(ctx context.Context, d sqlstore.Dialect, at Place, first int64) error {
	o := object{owner: at.Owner, stream: at.Stream}
	err := d.Query(ctx, `DELETE FROM cold_blocks`+ofPlace+` AND first = ? RETURNING object`, at.args(first),
		func(row sqlstore.Scanner) error { return row.Scan(&o.id) })
	if err == nil {
		_, err = d.Exec(ctx, `UPDATE cold_objects SET state = CASE WHEN EXISTS (SELECT 1 FROM cold_blocks
  WHERE owner = ? AND stream = ? AND object = ?) THEN 3 ELSE 2 END, at = ?`+ofObject,
			o.with(o.owner, o.stream, o.id, now())...)
	}
	return sqlstore.Wrap(err, "release block")
}

// doom notes, in the transaction that stops using it, that an object is to be removed.
func doom(ctx context.Context, d sqlstore.Dialect, o object) error {
	_, err := d.Exec(ctx, `UPDATE cold_objects SET state = 2, at = ?`+ofObject, o.with(now())...)
	return sqlstore.Wrap(err, "note object to be removed")
}
