package state

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

// Commit makes steps durable, in one transaction with those of other callers. It answers one error a step: nil, or
// tail.ErrStale for a step that was left out because the stored cursor is not its Prev. An error for all means that
// nothing happened. Batches get their Seq.
func (db *DB) Commit(ctx context.Context, steps []Step) ([]error, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	var size int64
	for i := range steps {
		for j := range steps[i].Batches {
			size += int64(len(steps[i].Batches[j].Frame))
		}
	}
	errs := make([]error, len(steps))
	err := db.update(ctx, size, func(t *txn) error {
		for i := range steps {
			errs[i] = t.step(&steps[i])
			if errs[i] != nil && !errors.Is(errs[i], tail.ErrStale) {
				return errs[i]
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return errs, nil
}

// step moves one file. tail.ErrStale: it was left out, and nothing of it was written.
func (t *txn) step(s *Step) error {
	id := s.Tracked.File.ID
	if err := t.Fault("check"); err != nil {
		return err
	}
	if len(s.Batches) > 0 && s.Facts.Dest == "" {
		return fmt.Errorf("queue lines of %s: no destination", s.Tracked.File.Path)
	}
	old, found, err := t.file(id)
	if err != nil {
		return err
	}
	if old.tracked.Cursor != s.Prev {
		return tail.ErrStale
	}
	if err := t.putPast(s, &old); err != nil {
		return err
	}
	if err := t.moveMarks(s); err != nil {
		return err
	}
	row := fileRow{tracked: s.Tracked, facts: s.Facts}
	row.facts.Stream.ID = uint64(id)
	// A settlement may have counted since the caller read the facts; only a start from line 0 begins anew.
	row.facts.Withheld, row.facts.Plain = old.facts.Withheld, old.facts.Plain
	if s.From != s.Prev && s.From.Offset == 0 {
		row.facts.Withheld, row.facts.Plain = 0, false
	}
	if row.dest, err = t.destID(s.Facts.Dest); err != nil {
		return err
	}
	if err := t.putFile("put file", row, old, found); err != nil {
		return err
	}
	for i := range s.Batches {
		if err := t.putBatch(row.dest, uint64(id), &s.Batches[i]); err != nil {
			return err
		}
	}
	return nil
}

// moveMarks cuts the marks that a rewind made void, and adds the new ones.
func (t *txn) moveMarks(s *Step) error {
	id := s.Tracked.File.ID
	if s.From != s.Prev {
		if err := t.cutMarks(id, s.From.Offset); err != nil {
			return err
		}
	}
	for _, m := range s.Marks {
		v := binary.BigEndian.AppendUint64(make([]byte, 0, 16), uint64(m.Line))
		if err := t.Put("put marks", t.prefixes, markKey(id, m.Offset), binary.BigEndian.AppendUint64(v, m.Hash)); err != nil {
			return err
		}
	}
	return nil
}

// cutMarks removes the marks of a file beyond an offset; -1: all.
func (t *txn) cutMarks(id tail.FileID, beyond int64) error {
	prefix := fileKey(id)
	var keys [][]byte // a cursor skips keys when its bucket is deleted from on the way
	c := t.prefixes.Cursor()
	for k, _ := c.Seek(markKey(id, beyond+1)); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		keys = append(keys, k)
	}
	for _, k := range keys {
		if err := t.Delete("cut marks", t.prefixes, k); err != nil {
			return err
		}
	}
	return nil
}

// putBatch queues a batch and gives it its Seq.
func (t *txn) putBatch(dest uint32, stream uint64, b *outbox.Batch) error {
	dest = queueOf(dest, b.Kind == outbox.Blob)
	seq, err := t.outbox.NextSequence()
	if err != nil {
		return fmt.Errorf("number batch: %w", err)
	}
	b.Seq = seq
	k := rowKey(dest, stream, seq)
	v := encodeBatchRow(k, b, t.Now)
	if err := t.Put("put batch", t.outbox, k, v); err != nil {
		return err
	}
	t.delta.added = append(t.delta.added, rowMeta{dest: dest, stream: stream, seq: seq, at: t.Now,
		entries: int64(b.Entries), raw: rawOf(b), stored: int64(len(k) + len(v))})
	return nil
}
