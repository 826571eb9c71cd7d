package state

import (
	"bytes"
	"context"
	"fmt"

	"github.com/ccship/ccship/tail"
)

// Dropped counts what Drop removed.
type Dropped struct{ Rows, Entries, Dead int64 }

// Drop removes everything of some files that waits to be sent, for any destination, and their dead letters. What is in
// flight may still arrive. Cursors stay.
func (db *DB) Drop(ctx context.Context, ids []tail.FileID) (d Dropped, err error) {
	err = db.submit(ctx, 0, func(t *txn) error {
		d = Dropped{}
		for _, id := range ids {
			if err := t.drop(uint64(id), &d); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Dropped{}, fmt.Errorf("drop rows: %w", err)
	}
	return d, nil
}

func (t *txn) drop(stream uint64, d *Dropped) error {
	var rows [][]byte // a cursor skips keys when its bucket is deleted from on the way
	dests := t.dests.Cursor()
	for k, _ := dests.First(); k != nil; k, _ = dests.Next() {
		prefix := append(clone(k), fileKey(tail.FileID(stream))...)
		c := t.outbox.Cursor()
		for row, _ := c.Seek(prefix); bytes.HasPrefix(row, prefix); row, _ = c.Next() {
			rows = append(rows, clone(row))
		}
	}
	for _, k := range rows {
		m, err := readRowMeta(k, t.outbox.Get(k))
		if err != nil {
			return err
		}
		if _, err := t.deleteRow(m.dest, stream, m.seq); err != nil {
			return err
		}
		d.Rows, d.Entries = d.Rows+1, d.Entries+m.entries
	}
	return t.dropDead(stream, d)
}

func (t *txn) dropDead(stream uint64, d *Dropped) error {
	var letters [][]byte
	err := t.dead.ForEach(func(k, v []byte) error {
		r, err := decodeDeadRow(k, v)
		if err == nil && r.stream.ID == stream {
			letters = append(letters, clone(k))
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, k := range letters {
		if err := t.fault("delete dead"); err != nil {
			return err
		}
		t.delta.countDead(k, t.dead.Get(k), -1)
		if err := t.dead.Delete(k); err != nil {
			return fmt.Errorf("delete dead letter: %w", err)
		}
		t.dirty = true
		d.Dead++
	}
	return nil
}
