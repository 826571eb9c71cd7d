package state

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// Files is what is known of each transcript: where it is, how far it was read, and where its lines go.
type Files struct{ db *DB }

// Load implements tail.Cursors.
func (f *Files) Load(ctx context.Context) ([]tail.Tracked, error) {
	var all []tail.Tracked
	err := f.each(ctx, func(r *fileRow) { all = append(all, r.tracked) })
	if err != nil {
		return nil, fmt.Errorf("load files: %w", err)
	}
	return all, nil
}

// Routings returns the routing of every file.
func (f *Files) Routings(ctx context.Context) (map[tail.FileID]Routing, error) {
	all := map[tail.FileID]Routing{}
	err := f.each(ctx, func(r *fileRow) { all[r.tracked.File.ID] = r.routing })
	if err != nil {
		return nil, fmt.Errorf("load routings: %w", err)
	}
	return all, nil
}

// RoutingsOf returns the routing of some files. It leaves out those that are not known.
func (f *Files) RoutingsOf(ctx context.Context, ids []tail.FileID) (map[tail.FileID]Routing, error) {
	some := make(map[tail.FileID]Routing, len(ids))
	err := f.db.View(ctx, func(tx *kv.Snapshot) error {
		for _, id := range ids {
			r, found, err := f.read(tx, id)
			if err != nil {
				return err
			}
			if found {
				some[id] = r.routing
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read routings: %w", err)
	}
	return some, nil
}

// Reload implements tail.Cursors. ErrUnknownFile: the state has no row for it.
func (f *Files) Reload(ctx context.Context, id tail.FileID) (tail.Tracked, error) {
	r, found, err := f.get(ctx, id)
	if err != nil {
		return tail.Tracked{}, fmt.Errorf("reload file: %w", err)
	}
	if !found {
		return tail.Tracked{}, fmt.Errorf("reload file %d: %w", id, ErrUnknownFile)
	}
	return r.tracked, nil
}

// File returns everything known of one file; known is false when that is nothing.
func (f *Files) File(ctx context.Context, id tail.FileID) (t tail.Tracked, r Routing, known bool, err error) {
	row, known, err := f.get(ctx, id)
	if err != nil {
		return tail.Tracked{}, Routing{}, false, fmt.Errorf("read file: %w", err)
	}
	return row.tracked, row.routing, known, nil
}

// Routing returns one file's routing, and whether the file is known.
func (f *Files) Routing(ctx context.Context, id tail.FileID) (Routing, bool, error) {
	_, r, known, err := f.File(ctx, id)
	return r, known, err
}

// Marks implements tail.Cursors.
func (f *Files) Marks(ctx context.Context, id tail.FileID) ([]tail.Mark, error) {
	var marks []tail.Mark
	err := f.db.View(ctx, func(tx *kv.Snapshot) error {
		return eachMark(tx.Bucket(bucketMarks), id, 0, func(m tail.Mark) { marks = append(marks, m) })
	})
	if err != nil {
		return nil, fmt.Errorf("read marks: %w", err)
	}
	return marks, nil
}

// each calls fn for every file.
func (f *Files) each(ctx context.Context, fn func(*fileRow)) error {
	return f.db.View(ctx, func(tx *kv.Snapshot) error {
		return eachFileRow(tx, func(r *fileRow) error {
			r.routing.Dest = f.db.index.destURL(r.dest)
			fn(r)
			return nil
		})
	})
}

// eachFileRow calls fn for every row of the bucket files. Strings that many rows have in common share their bytes: a
// hundred thousand files lie below few folders.
func eachFileRow(tx *kv.Snapshot, fn func(*fileRow) error) error {
	interned := map[string]string{}
	return tx.Bucket(bucketFiles).ForEach(func(k, v []byte) error {
		if len(k) != 8 {
			return fmt.Errorf("%w: file key of %d bytes", ErrCorrupt, len(k))
		}
		r, err := decodeFileRow(tail.FileID(binary.BigEndian.Uint64(k)), v, interned)
		if err != nil {
			return err
		}
		return fn(&r)
	})
}

func (f *Files) get(ctx context.Context, id tail.FileID) (r fileRow, found bool, err error) {
	err = f.db.View(ctx, func(tx *kv.Snapshot) (err error) {
		r, found, err = f.read(tx, id)
		return err
	})
	return r, found, err
}

// read reads one file's row, with the URL of its destination.
func (f *Files) read(tx *kv.Snapshot, id tail.FileID) (r fileRow, found bool, err error) {
	v := tx.Bucket(bucketFiles).Get(fileKey(id))
	if v == nil {
		return fileRow{}, false, nil
	}
	if r, err = decodeFileRow(id, v, nil); err != nil {
		return fileRow{}, false, err
	}
	r.routing.Dest = f.db.index.destURL(r.dest)
	return r, true, nil
}
