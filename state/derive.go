package state

import (
	"context"
	"errors"
	"fmt"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

// Place is how far a transcript is understood: behind the last line that was folded, of a generation. The zero value is
// the beginning.
type Place struct {
	Offset, Line int64 // bytes, lines
	Generation   uint32
}

// PlaceOf is the place of a cursor.
func PlaceOf(c tail.Cursor) Place {
	return Place{Offset: c.Offset, Line: c.Line, Generation: c.Generation}
}

// Understood is what is kept of what a transcript means. The blobs are transcript's encodings; they are compressed
// here. When there is too much of it, that of the sessions that nobody wrote or asked for the longest loses its blobs:
// then the transcript is folded from its beginning, and what lies before Place has had its effects already.
type Understood struct {
	Place            Place
	Cleared          int64 // messages of lines below are not kept
	Had              int64 // lines below had their effects in an earlier folding, which may have come further than Place
	Fold, Log, Marks []byte
}

// Derivation is the one durable move of what is understood of a file: the place goes on, and what the lines up to it
// brought is kept and queued, together or not at all.
type Derivation struct {
	// File is the transcript. 0: of none, and only Pending and Documents are kept.
	File        tail.FileID
	Prev        Place       // must equal the stored place, else nothing of it is done (tail.ErrStale)
	Understood  *Understood // nil: the place stays, and Prev does not matter
	Checkpoints []Checkpoint
	Pending     []Pending
	Documents   []Document
	Asks        []DocumentAsk
	// Batches are queued for the server that the file's lines go to, and get their Seq. Those of a file whose lines go
	// nowhere are left out.
	Batches []outbox.Batch
}

func (d *Derivation) size() (n int64) {
	if u := d.Understood; u != nil {
		n += int64(len(u.Fold) + len(u.Log) + len(u.Marks))
	}
	for i := range d.Batches {
		n += int64(len(d.Batches[i].Frame))
	}
	return n
}

// Derive makes derivations durable, in one transaction with those of other callers. It answers one error each: nil,
// tail.ErrStale for one that was left out because the stored place is not its Prev, or ErrUnknownFile for one whose
// file was forgotten. An error for all means that nothing happened.
func (db *DB) Derive(ctx context.Context, all []Derivation) ([]error, error) {
	if len(all) == 0 {
		return nil, nil
	}
	var size int64
	packed := make([]blobs, len(all))
	for i := range all {
		size += all[i].size()
		if u := all[i].Understood; u != nil {
			var err error
			if packed[i], err = db.pack(u); err != nil {
				return nil, err
			}
		}
	}
	errs := make([]error, len(all))
	err := db.update(ctx, size, func(t *txn) error {
		for i := range all {
			errs[i] = t.derive(&all[i], &packed[i])
			if errs[i] != nil && !errors.Is(errs[i], tail.ErrStale) && !errors.Is(errs[i], ErrUnknownFile) {
				return errs[i]
			}
		}
		return t.boundUnderstood(all)
	})
	if err != nil {
		return nil, fmt.Errorf("keep what sessions mean: %w", err)
	}
	return errs, nil
}

// derive keeps one derivation. tail.ErrStale and ErrUnknownFile: nothing of it was written.
func (t *txn) derive(d *Derivation, b *blobs) error {
	var dest uint32
	if d.File != 0 {
		f, found, err := t.file(d.File)
		if err != nil {
			return err
		}
		if !found {
			return ErrUnknownFile
		}
		dest = f.dest
	}
	if d.Understood != nil {
		if err := t.putUnderstood(d, b); err != nil {
			return err
		}
	}
	for _, put := range []func(*Derivation) error{t.putCheckpoints, t.putPending, t.putDocuments, t.putAsks} {
		if err := put(d); err != nil {
			return err
		}
	}
	if dest == 0 {
		return nil
	}
	for i := range d.Batches {
		if err := t.putBatch(dest, uint64(d.File), &d.Batches[i]); err != nil {
			return err
		}
	}
	return nil
}

// DropDerived removes all that is kept of what some files mean. What of it waits in the outbox is Drop's.
func (db *DB) DropDerived(ctx context.Context, ids []tail.FileID) error {
	err := db.update(ctx, 0, func(t *txn) error {
		for _, id := range ids {
			f, _, err := t.file(id)
			if err != nil {
				return err
			}
			if err := t.dropDerived(id, f.facts.Stream.SessionID); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("drop what sessions mean: %w", err)
	}
	return nil
}

// dropDerived removes what is kept of a file, and of the session that it is; session is "" while that is not decided.
func (t *txn) dropDerived(id tail.FileID, session string) error {
	if err := t.dropUnderstood(id); err != nil {
		return err
	}
	for _, drop := range []func(tail.FileID, string) error{t.dropCheckpoints, t.dropPending, t.dropDocuments} {
		if err := drop(id, session); err != nil {
			return err
		}
	}
	return nil
}
