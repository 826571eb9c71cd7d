package state

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/ccship/ccship/outbox"
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

// Update implements tail.Cursors. It takes over where a file is and what was seen of it, but never its cursor: only
// Commit moves that, together with the lines. A file that is not known yet is added if its cursor is zero. One with
// another cursor is left out, because nothing shows where the lines before that cursor went.
func (f *Files) Update(ctx context.Context, files []tail.Tracked) error {
	if len(files) == 0 {
		return nil
	}
	return f.db.Transact(ctx, 0, func(t *Tx) error {
		for i := range files {
			if err := t.updateFile(&files[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *Tx) updateFile(f *tail.Tracked) error {
	old, found, err := t.file(f.File.ID)
	if err != nil {
		return err
	}
	if !found && f.Cursor != (tail.Cursor{}) {
		return nil
	}
	row := old
	row.tracked = *f
	row.tracked.Cursor, row.tracked.Provisional = old.tracked.Cursor, old.tracked.Provisional
	row.routing.Stream.ID = uint64(f.File.ID)
	if found && row.tracked == old.tracked {
		return nil
	}
	return t.putFile("put file", row, old, found)
}

// Forget implements tail.Cursors. It keeps a file with lines in the outbox or among the dead letters: what was read is
// still sent.
func (f *Files) Forget(ctx context.Context, ids []tail.FileID) (forgotten []tail.FileID, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = f.db.Transact(ctx, 0, func(t *Tx) error {
		forgotten = nil
		dead, err := t.deadStreams()
		if err != nil {
			return err
		}
		for _, id := range ids {
			if dead[uint64(id)] || t.hasRows(uint64(id)) {
				continue
			}
			if err := t.forget(id); err != nil {
				return err
			}
			forgotten = append(forgotten, id)
		}
		return nil
	})
	return forgotten, err
}

func (t *Tx) forget(id tail.FileID) error {
	old, found, err := t.file(id)
	if err != nil || !found {
		return err
	}
	if err := t.cutMarks(id, -1); err != nil {
		return err
	}
	if err := t.trimPast(id, 0); err != nil {
		return err
	}
	if err := t.db.dependents.FileForgotten(t, id, old.routing.Stream.SessionID); err != nil {
		return err
	}
	if err := t.Delete("forget file", t.files, fileKey(id)); err != nil {
		return err
	}
	t.delta.countFile(old.dest, -1)
	t.delta.odd.add(&old, -1)
	return nil
}

// SetRoutings replaces the routing of files that are known, except for what commits and acknowledgements noted there:
// the caller decided by an earlier copy, and must not undo what was written since.
func (f *Files) SetRoutings(ctx context.Context, routings map[tail.FileID]Routing) error {
	if len(routings) == 0 {
		return nil
	}
	return f.db.Transact(ctx, 0, func(t *Tx) error {
		for id := range routings {
			if err := t.setRouting(id, routings[id]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *Tx) setRouting(id tail.FileID, r Routing) error {
	old, found, err := t.file(id)
	if err != nil || !found {
		return err
	}
	was := &old.routing
	r.Stream.ID = uint64(id)
	r.Withheld, r.Plain, r.Odd = was.Withheld, was.Plain, was.Odd
	r.Watched, r.WatchedFrom, r.Compacted = was.Watched, was.WatchedFrom, was.Compacted
	row := fileRow{tracked: old.tracked, routing: r}
	if row.dest, err = t.Destination(r.Dest); err != nil {
		return err
	}
	return t.putFile("put file", row, old, true)
}

// Routing is what is decided once for a file and then kept: its stream, and where its lines go. The stream's name must
// not change while the file is the same, because the server files lines under it.
type Routing struct {
	Stream    outbox.Stream // ID equals the file's id
	Dest      string        // normalised URL that its cursor and rows belong to; "" while nothing may be queued
	ParentCwd string        // working directory of the session that an agent's transcript is of, "" unknown
	RewoundTo int64         // first line of the current generation
	Decided   bool          // working directory, project and stream name are fixed
	Withheld  int64         // entries that a plain server did not get; Settle adds, a rewind takes away
	Plain     bool          // a server without the extension acknowledged some entries; cleared as Withheld is
	Excluded  int64         // lines left out by exclude_types since line 0 was read last
	Odd       OddLines      // lines up to the cursor that are no JSON objects
	// SentBefore is the number of first lines that the server already had before the file was first seen: they are
	// not queued in generation 0.
	SentBefore int64
	// Watched means that lines from the offset WatchedFrom on were written while a daemon was running. A later daemon
	// continues from there, also with what was written in between.
	Watched     bool
	WatchedFrom int64
	// Compacted means that a line may be the record of a compaction.
	Compacted bool
}

// eachMark calls fn for the marks of a file from an offset on.
func eachMark(marks *kv.Bucket, id tail.FileID, from int64, fn func(tail.Mark)) error {
	prefix := fileKey(id)
	c := marks.Cursor()
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

// moveMarks removes the marks that a rewind made void, and adds the new ones. It shares the transaction of the cursor:
// a mark beyond the cursor would later prove a prefix that was never queued.
func (t *Tx) moveMarks(s *Step) error {
	id := s.Tracked.File.ID
	if s.From != s.Prev {
		if err := t.cutMarks(id, s.From.Offset); err != nil {
			return err
		}
	}
	return t.putMarks(id, s.Marks)
}

func (t *Tx) putMarks(id tail.FileID, marks []tail.Mark) error {
	for _, m := range marks {
		v := binary.BigEndian.AppendUint64(make([]byte, 0, 16), uint64(m.Line))
		v = binary.BigEndian.AppendUint64(v, m.Hash)
		if err := t.Put("put marks", t.marks, markKey(id, m.Offset), v); err != nil {
			return err
		}
	}
	return nil
}

// cutMarks removes the marks of a file beyond an offset; -1: all.
func (t *Tx) cutMarks(id tail.FileID, beyond int64) error {
	prefix := fileKey(id)
	var keys [][]byte // a cursor skips keys when its bucket is deleted from on the way
	c := t.marks.Cursor()
	for k, _ := c.Seek(markKey(id, beyond+1)); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		keys = append(keys, k)
	}
	for _, k := range keys {
		if err := t.Delete("cut marks", t.marks, k); err != nil {
			return err
		}
	}
	return nil
}
