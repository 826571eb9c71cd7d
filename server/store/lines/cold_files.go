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
