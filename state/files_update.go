package state

import (
	"context"

	"github.com/ccship/ccship/tail"
)

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
