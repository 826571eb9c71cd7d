package lines

import (
	"context"
	"errors"
	"fmt"

	"github.com/ccship/ccship/server/store/sqlstore"
)

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
  WHERE c.owner = b.owner AND c.blob = b.id)
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
		list, err := sqlstore.List(ctx, m.db, `SELECT place, data FROM blob_chunks WHERE owner = ? AND blob = ?
ORDER BY place LIMIT 1`, []any{f.owner, f.id},
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
	n, err := d.Exec(ctx, `DELETE FROM blob_chunks
WHERE owner = ? AND blob = ? AND place = ? AND length(data) = ?`, f.owner, f.id, p.place, len(p.data))
	if err == nil && n != 1 {
		err = errColdMoved
	}
	if err != nil {
		return err
	}
	_, err = d.Exec(ctx, `INSERT INTO cold_chunks (owner, blob, place, object) VALUES (?, ?, ?, ?)`,
		f.owner, f.id, p.place, o.id)
	return err
}

// chunk returns the first piece of a file, from a position on, that is not in the database, and where it begins. ok is
// false if all others are.
func chunk(ctx context.Context, d sqlstore.Dialect, of object, from int64) (o object, place int64, ok bool, err error) {
	err = d.Query(ctx, `SELECT c.place, `+objectColumns+` FROM cold_chunks c
JOIN cold_objects o ON o.owner = c.owner AND o.stream = 0 AND o.blob = c.blob AND o.id = c.object
WHERE c.owner = ? AND c.blob = ? AND c.place >= ? ORDER BY c.place LIMIT 1`, []any{of.owner, of.blob, from},
		func(row sqlstore.Scanner) error {
			ok = true
			return row.Scan(&place, &o.owner, &o.stream, &o.blob, &o.id, &o.size, &o.sha256, &o.at)
		})
	return o, place, ok, sqlstore.Wrap(err, "look for a cold file")
}

// Chunk implements sqlstore.ColdFiles.
func (t *Tier) Chunk(ctx context.Context, owner, blob, place int64) ([]byte, error) {
	o, found, ok, err := chunk(ctx, t.db, object{owner: owner, blob: blob}, place)
	if err != nil || !ok || found != place {
		return nil, err
	}
	return t.fetch(ctx, o)
}

// Whole returns nil if all of a file is in the database. Its error ends the transaction, which begins again once the
// file is there.
func (t *Tier) Whole(ctx context.Context, d sqlstore.Dialect, owner, blob int64) error {
	o, _, ok, err := chunk(ctx, d, object{owner: owner, blob: blob}, 0)
	if err != nil || !ok {
		return err
	}
	return &missError{o}
}

// thawFile brings a file back into the database, chunk after chunk. It counts as new, so that it stays a while.
func (t *Tier) thawFile(ctx context.Context, owner, blob int64) error {
	for {
		o, place, ok, err := chunk(ctx, t.db, object{owner: owner, blob: blob}, 0)
		if err != nil || !ok {
			return err
		}
		data, err := t.fetch(ctx, o)
		if err == nil && len(data) == 0 {
			err = errObjectDamaged
		}
		if err != nil {
			return fmt.Errorf("bring file back: %w", err)
		}
		err = t.db.Write(ctx, func(d sqlstore.Dialect) error { return thawPiece(ctx, d, o, place, data) })
		if err != nil {
			return fmt.Errorf("bring file back: %w", err)
		}
	}
}

func thawPiece(ctx context.Context, d sqlstore.Dialect, o object, place int64, data []byte) error {
	_, err := d.Exec(ctx, `UPDATE blobs SET touched = ? WHERE owner = ? AND id = ?`, now(), o.owner, o.blob)
	if err != nil {
		return err
	}
	n, err := d.Exec(ctx, `DELETE FROM cold_chunks WHERE owner = ? AND blob = ? AND place = ? AND object = ?`,
		o.owner, o.blob, place, o.id)
	if err != nil || n == 0 {
		return err // forgotten, or brought by another
	}
	_, err = d.Exec(ctx, `INSERT INTO blob_chunks (owner, blob, place, data) VALUES (?, ?, ?, ?)`,
		o.owner, o.blob, place, data)
	if err != nil {
		return err
	}
	return doom(ctx, d, o)
}
