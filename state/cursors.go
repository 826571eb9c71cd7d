package state

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/ccship/ccship/state/kv"

	"github.com/ccship/ccship/tail"
)

// Load implements tail.Cursors.
func (db *DB) Load(ctx context.Context) ([]tail.Tracked, error) {
	var all []tail.Tracked
	err := db.eachFile(ctx, func(r *fileRow) { all = append(all, r.tracked) })
	if err != nil {
		return nil, fmt.Errorf("load files: %w", err)
	}
	return all, nil
}

// LoadFacts answers the facts of all files.
func (db *DB) LoadFacts(ctx context.Context) (map[tail.FileID]Facts, error) {
	all := map[tail.FileID]Facts{}
	err := db.eachFile(ctx, func(r *fileRow) { all[r.tracked.File.ID] = r.facts })
	if err != nil {
		return nil, fmt.Errorf("load facts: %w", err)
	}
	return all, nil
}

// eachFile calls fn for every row of files, with strings that share their bytes.
func (db *DB) eachFile(ctx context.Context, fn func(*fileRow)) error {
	interned := map[string]string{}
	return db.view(ctx, func(tx *kv.Snapshot) error {
		return tx.Bucket(bucketFiles).ForEach(func(k, v []byte) error {
			id, err := splitFileKey(k)
			if err != nil {
				return err
			}
			r, err := decodeFileRow(id, v, interned)
			if err != nil {
				return err
			}
			r.facts.Dest = db.index.destURL(r.dest)
			fn(&r)
			return nil
		})
	})
}

func splitFileKey(k []byte) (tail.FileID, error) {
	if len(k) != 8 {
		return 0, fmt.Errorf("%w: file key of %d bytes", ErrCorrupt, len(k))
	}
	return tail.FileID(binary.BigEndian.Uint64(k)), nil
}

// Reload implements tail.Cursors. ErrUnknownFile: nothing is remembered of it.
func (db *DB) Reload(ctx context.Context, id tail.FileID) (tail.Tracked, error) {
	r, found, err := db.readFile(ctx, id)
	if err != nil {
		return tail.Tracked{}, fmt.Errorf("reload file: %w", err)
	}
	if !found {
		return tail.Tracked{}, fmt.Errorf("reload file %d: %w", id, ErrUnknownFile)
	}
	return r.tracked, nil
}

// File answers all that is remembered of one file, and whether anything is.
func (db *DB) File(ctx context.Context, id tail.FileID) (t tail.Tracked, f Facts, known bool, err error) {
	r, known, err := db.readFile(ctx, id)
	if err != nil {
		return tail.Tracked{}, Facts{}, false, fmt.Errorf("read file: %w", err)
	}
	return r.tracked, r.facts, known, nil
}

// Facts answers one file's facts, and whether it is known.
func (db *DB) Facts(ctx context.Context, id tail.FileID) (Facts, bool, error) {
	r, found, err := db.readFile(ctx, id)
	if err != nil {
		return Facts{}, false, fmt.Errorf("read facts: %w", err)
	}
	return r.facts, found, nil
}

func (db *DB) readFile(ctx context.Context, id tail.FileID) (r fileRow, found bool, err error) {
	err = db.view(ctx, func(tx *kv.Snapshot) (err error) {
		v := tx.Bucket(bucketFiles).Get(fileKey(id))
		if v == nil {
			return nil
		}
		found = true
		r, err = decodeFileRow(id, v, nil)
		return err
	})
	if err != nil {
		return fileRow{}, false, err
	}
	r.facts.Dest = db.index.destURL(r.dest)
	return r, found, nil
}

// Marks implements tail.Cursors.
func (db *DB) Marks(ctx context.Context, id tail.FileID) ([]tail.Mark, error) {
	var marks []tail.Mark
	err := db.view(ctx, func(tx *kv.Snapshot) error {
		return eachMark(tx.Bucket(bucketMarks), id, 0, func(m tail.Mark) { marks = append(marks, m) })
	})
	if err != nil {
		return nil, fmt.Errorf("read marks: %w", err)
	}
	return marks, nil
}

// eachMark calls fn for the marks of a file from an offset on.
func eachMark(prefixes *kv.Bucket, id tail.FileID, from int64, fn func(tail.Mark)) error {
	prefix := fileKey(id)
	c := prefixes.Cursor()
	for k, v := c.Seek(markKey(id, from)); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if len(k) != 16 || len(v) != 16 {
			return fmt.Errorf("%w: mark of %d and %d bytes", ErrCorrupt, len(k), len(v))
		}
		fn(tail.Mark{
			Offset: int64(binary.BigEndian.Uint64(k[8:])),
			Line:   int64(binary.BigEndian.Uint64(v)),
			Hash:   binary.BigEndian.Uint64(v[8:]),
		})
	}
	return nil
}

// Update implements tail.Cursors: all but the cursor and what hangs on it is taken. A file that is not known yet is
// remembered if its cursor is zero.
func (db *DB) Update(ctx context.Context, files []tail.Tracked) error {
	if len(files) == 0 {
		return nil
	}
	return db.update(ctx, 0, func(t *txn) error {
		for _, f := range files {
			old, found, err := t.file(f.File.ID)
			if err != nil {
				return err
			}
			if !found && f.Cursor != (tail.Cursor{}) {
				continue // it can't be known where this cursor's lines went
			}
			row := old
			row.tracked = f
			row.tracked.Cursor, row.tracked.Provisional = old.tracked.Cursor, old.tracked.Provisional
			row.facts.Stream.ID = uint64(f.File.ID)
			if found && row.tracked == old.tracked {
				continue
			}
			if err := t.putFile("put file", row, old, found); err != nil {
				return err
			}
		}
		return nil
	})
}

// Forget implements tail.Cursors. A file with lines in the outbox or among the dead letters is kept: what was read
// still goes out. It is offered again by the next Load.
func (db *DB) Forget(ctx context.Context, ids []tail.FileID) error {
	if len(ids) == 0 {
		return nil
	}
	return db.update(ctx, 0, func(t *txn) error {
		buried, err := t.deadStreams()
		if err != nil {
			return err
		}
		for _, id := range ids {
			if buried[uint64(id)] || t.hasRows(uint64(id)) {
				continue
			}
			if err := t.forget(id); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *txn) forget(id tail.FileID) error {
	old, found, err := t.file(id)
	if err != nil || !found {
		return err
	}
	if err := t.cutMarks(id, -1); err != nil {
		return err
	}
	if err := t.trimPasts(id, 0); err != nil {
		return err
	}
	if err := t.dropBeside(id); err != nil {
		return err
	}
	if err := t.dropDerived(id, old.facts.Stream.SessionID); err != nil {
		return err
	}
	if err := t.Delete("forget file", t.files, fileKey(id)); err != nil {
		return err
	}
	t.delta.countFile(old.dest, -1)
	t.delta.withheld -= old.facts.Withheld
	return nil
}

// SetFacts replaces the facts of files that are known, but not what steps and settlements noted there.
func (db *DB) SetFacts(ctx context.Context, facts map[tail.FileID]Facts) error {
	if len(facts) == 0 {
		return nil
	}
	return db.update(ctx, 0, func(t *txn) error {
		for id, f := range facts {
			old, found, err := t.file(id)
			if err != nil {
				return err
			}
			if !found {
				continue
			}
			row := fileRow{tracked: old.tracked, facts: f}
			row.facts.Stream.ID = uint64(id)
			row.facts.Withheld, row.facts.Plain = old.facts.Withheld, old.facts.Plain
			row.facts.Watched, row.facts.WatchedFrom, row.facts.Compacted = old.facts.Watched, old.facts.WatchedFrom, old.facts.Compacted
			if row.dest, err = t.destID(f.Dest); err != nil {
				return err
			}
			if err := t.putFile("put file", row, old, true); err != nil {
				return err
			}
		}
		return nil
	})
}
