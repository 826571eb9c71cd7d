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
		if _, err = t.fetch(ctx, o); errors.Is(err, sqlstore.ErrSwept) {
			return nil // it is in the database again, where the next try looks
		}
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

// objectFile is one that may be moved.
type objectFile struct {
	owner, id int64
	sha256    []byte // of all of it
}

// objectPiece is a chunk of a file.
type objectPiece struct {
	place int64
	data  []byte
}

// files moves the contents of files that came before m.before, each chunk as an object.
func (m *mover) files(ctx context.Context) error {
	for last := int64(0); ; {
		page, err := m.listed(ctx, `SELECT b.owner, b.id, b.sha256 FROM blobs b
WHERE b.id > ? AND b.stored > 0 AND b.touched < ? AND EXISTS (SELECT 1 FROM blob_chunks c
  WHERE c.owner = b.owner AND c.blob = b.id AND c.object = '')
ORDER BY b.id LIMIT ?`, last, m.before, pageStreams)
		if err != nil || len(page) < pageStreams {
			return err
		}
		last = page[len(page)-1].id
	}
}

// listed moves the files that a query lists.
func (m *mover) listed(ctx context.Context, query string, args ...any) ([]objectFile, error) {
	page, err := sqlstore.List(ctx, m.db, query, args,
		func(row sqlstore.Scanner) (f objectFile, err error) { return f, row.Scan(&f.owner, &f.id, &f.sha256) })
	if err != nil {
		return nil, fmt.Errorf("look for files: %w", err)
	}
	for _, f := range page {
		if err := m.file(ctx, f); err != nil && !errors.Is(err, errColdMoved) {
			return nil, err
		}
	}
	return page, nil
}

func (m *mover) file(ctx context.Context, f objectFile) error {
	for {
		if mine, err := m.lease(ctx, cooling, objectLease); err != nil || !mine {
			return errors.Join(err, ctx.Err())
		}
		list, err := sqlstore.List(ctx, m.db, `SELECT place, data FROM blob_chunks
WHERE owner = ? AND blob = ? AND object = '' ORDER BY place LIMIT 1`, []any{f.owner, f.id},
			func(row sqlstore.Scanner) (p objectPiece, err error) { return p, row.Scan(&p.place, &p.data) })
		if err != nil || len(list) == 0 {
			return err
		}
		o := newObject(list[0].data)
		o.owner, o.blob = f.owner, f.id
		err = m.move(ctx, o, list[0].data, func(d sqlstore.Dialect) error {
			return dropPiece(ctx, d, f, o, list[0])
		})
		if err != nil {
			return err
		}
	}
}

// dropPiece takes a chunk of a file out of the database.
func dropPiece(ctx context.Context, d sqlstore.Dialect, f objectFile, o object, p objectPiece) error {
	same, err := sqlstore.Number(ctx, sqlstore.Locked{Dialect: d},
		`SELECT 1 FROM blobs WHERE owner = ? AND id = ? AND sha256 = ? AND stored > 0`, f.owner, f.id, f.sha256)
	if err == nil && same == 0 {
		err = errColdMoved // forgotten or masked
	}
	if err != nil {
		return err
	}
	n, err := d.Exec(ctx, `UPDATE blob_chunks SET data = ?, object = ?
WHERE owner = ? AND blob = ? AND place = ? AND object = '' AND length(data) = ?`,
		[]byte{}, o.id, f.owner, f.id, p.place, len(p.data))
	if err == nil && n != 1 {
		err = errColdMoved
	}
	return err
}

// selectChunk reads chunks c of files, and which objects o have their data.
const selectChunk = ` FROM blob_chunks c
LEFT JOIN cold_objects o ON o.owner = c.owner AND o.stream = 0 AND o.blob = c.blob AND o.id = c.object
WHERE c.owner = ? AND c.blob = ?`

// Chunk implements sqlstore.ColdFiles.
func (t *Tier) Chunk(ctx context.Context, owner, blob, place int64) (data []byte, err error) {
	return data, lookAgain(func() error {
		o := object{owner: owner, blob: blob}
		err := t.db.Query(ctx, `SELECT c.data, coalesce(o.id, ''), coalesce(o.size, 0), o.sha256`+selectChunk+`
AND c.place = ?`, []any{owner, blob, place}, func(row sqlstore.Scanner) error {
			return row.Scan(&data, &o.id, &o.size, &o.sha256)
		})
		if err == nil && o.id != "" {
			data, err = t.fetch(ctx, o)
		}
		return err
	})
}

// coldChunk returns the object of the first chunk of a file that is not in the database; without an id if all are.
func coldChunk(ctx context.Context, d sqlstore.Dialect, owner, blob int64) (o object, err error) {
	err = d.Query(ctx, `SELECT `+objectColumns+selectChunk+` AND o.id <> '' ORDER BY c.place LIMIT 1`,
		[]any{owner, blob}, func(row sqlstore.Scanner) (err error) {
			o, err = scanObject(row)
			return err
		})
	return o, sqlstore.Wrap(err, "look for a cold file")
}

// Whole returns nil if all of a file is in the database. Its error ends the transaction, which begins again once the
// file is there.
func (t *Tier) Whole(ctx context.Context, d sqlstore.Dialect, owner, blob int64) error {
	o, err := coldChunk(ctx, d, owner, blob)
	if err != nil || o.id == "" {
		return err
	}
	return &missError{o}
}
