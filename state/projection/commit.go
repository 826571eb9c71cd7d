package projection

import (
	"context"
	"errors"
	"fmt"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// Place is how far a transcript was folded: after the last line that was, of a generation. The zero value is the
// beginning.
type Place struct {
	Offset, Line int64 // bytes, lines
	Generation   uint32
}

// PlaceOf returns the position of a cursor.
func PlaceOf(c tail.Cursor) Place {
	return Place{Offset: c.Offset, Line: c.Line, Generation: c.Generation}
}

// Projection is what is kept of a transcript. Fold, Log and Marks are encodings of the caller; they are compressed
// here. When they take too many bytes, the sessions that were written longest ago lose theirs. Such a transcript is
// folded again from its beginning, and lines before Place are known to have had their effects.
type Projection struct {
	Place   Place
	Cleared int64 // messages of lines below are not kept
	// EffectsThrough: lines below had their effects in an earlier fold, which may have come further than Place.
	EffectsThrough   int64
	Fold, Log, Marks []byte
}

// Derivation is the one durable move of a projection: the position advances, and the results of the lines up to it are
// stored and queued, together or not at all. So a crash neither loses a checkpoint nor queues one twice.
type Derivation struct {
	// File is the transcript. 0: none; then only Notices, Shown and Documents are stored.
	File         tail.FileID
	Prev         Place       // must equal the stored position, else all of it is left out (tail.ErrStale)
	Projection   *Projection // nil: the position stays, and Prev does not matter
	Checkpoints  []Checkpoint
	Notices      []Notice
	Shown        []Notice // notices that the session's transcript shows: they are removed
	Documents    []Document
	LinkRequests []LinkRequest
	// Batches are queued for the server that the file's lines go to, and get their Seq. They are left out when the
	// file's lines go nowhere.
	Batches []outbox.Batch
}

func (d *Derivation) size() (n int64) {
	if u := d.Projection; u != nil {
		n += int64(len(u.Fold) + len(u.Log) + len(u.Marks))
	}
	for i := range d.Batches {
		n += int64(len(d.Batches[i].Frame))
	}
	return n
}

// Commit makes derivations durable, in one transaction with those of other callers. It returns one error for each: nil,
// tail.ErrStale for one that was left out because the stored position is not its Prev, or state.ErrUnknownFile for one
// whose file was forgotten. An error for all means that nothing happened.
func (db *DB) Commit(ctx context.Context, all []Derivation) ([]error, error) {
	if len(all) == 0 {
		return nil, nil
	}
	var size int64
	packed := make([]foldRow, len(all))
	for i := range all {
		size += all[i].size()
		if u := all[i].Projection; u != nil {
			var err error
			if packed[i], err = db.pack(u); err != nil {
				return nil, err
			}
		}
	}
	errs := make([]error, len(all))
	err := db.update(ctx, size, func(t *tx) error {
		for i := range all {
			errs[i] = t.derive(&all[i], &packed[i])
			if errs[i] != nil && !errors.Is(errs[i], tail.ErrStale) && !errors.Is(errs[i], state.ErrUnknownFile) {
				return errs[i]
			}
		}
		return t.boundFolds(all)
	})
	if err != nil {
		return nil, fmt.Errorf("store projections: %w", err)
	}
	return errs, nil
}

// derive stores one derivation. tail.ErrStale and state.ErrUnknownFile: nothing of it was written.
func (t *tx) derive(d *Derivation, b *foldRow) error {
	var dest uint32
	if d.File != 0 {
		_, to, found, err := t.File(d.File)
		if err != nil {
			return err
		}
		if !found {
			return state.ErrUnknownFile
		}
		dest = to
	}
	if d.Projection != nil {
		if err := t.putProjection(d, b); err != nil {
			return err
		}
	}
	for _, put := range []func(*Derivation) error{t.putCheckpoints, t.putNotices, t.putDocuments, t.putLinkRequests} {
		if err := put(d); err != nil {
			return err
		}
	}
	if dest == 0 {
		return nil
	}
	for i := range d.Batches {
		if err := t.Queue(dest, d.File, &d.Batches[i]); err != nil {
			return err
		}
	}
	return nil
}

// Drop removes all that is kept of some files and their sessions. What of it waits in the outbox is removed by
// state.Outbox.Drop.
func (db *DB) Drop(ctx context.Context, ids []tail.FileID) error {
	err := db.update(ctx, 0, func(t *tx) error {
		for _, id := range ids {
			r, _, _, err := t.File(id)
			if err != nil {
				return err
			}
			if err := t.drop(id, r.Stream.SessionID); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("drop projections: %w", err)
	}
	return nil
}

// drop removes what is kept of a file, and of the session that it is; session is "" while that is not decided.
func (t *tx) drop(id tail.FileID, session string) error {
	if err := t.dropProjection(id); err != nil {
		return err
	}
	for _, drop := range []func(tail.FileID, string) error{t.dropCheckpoints, t.dropNotices, t.dropDocuments} {
		if err := drop(id, session); err != nil {
			return err
		}
	}
	return nil
}
