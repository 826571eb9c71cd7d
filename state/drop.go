package state

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// Dropped counts what Drop removed.
type Dropped struct{ Rows, Entries, Dead int64 }

// Drop removes everything of some files that waits to be sent, for any destination, and their dead letters. What is in
// flight may still arrive. Cursors stay.
func (db *DB) Drop(ctx context.Context, ids []tail.FileID) (d Dropped, err error) {
	err = db.update(ctx, 0, func(t *txn) error {
		d = Dropped{}
		for _, id := range ids {
			if err := t.dropBeside(id); err != nil {
				return err
			}
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

// DropDestinations removes everything that waits for some destinations, by their normalised URLs, and their dead
// letters. What is in flight may still arrive.
func (db *DB) DropDestinations(ctx context.Context, urls []string) (d Dropped, err error) {
	err = db.update(ctx, 0, func(t *txn) error {
		d = Dropped{}
		for _, url := range urls {
			id, known := t.known.destID(url)
			if !known {
				continue
			}
			rows := append(kv.Keys(t.outbox, destKey(id)), kv.Keys(t.outbox, destKey(queueOf(id, true)))...)
			if err := t.dropRows(rows, &d); err != nil {
				return err
			}
			if err := t.dropDead(func(r *deadRow) bool { return r.dest == id }, &d); err != nil {
				return err
			}
			if err := t.dropBlobRows(destKey(id)); err != nil {
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

// drop removes a stream's rows and dead letters.
func (t *txn) drop(stream uint64, d *Dropped) error {
	var rows [][]byte
	dests := t.dests.Cursor()
	for k, _ := dests.First(); k != nil; k, _ = dests.Next() {
		for _, blobs := range []bool{false, true} {
			queue := queueOf(binary.BigEndian.Uint32(k), blobs)
			rows = append(rows, kv.Keys(t.outbox, streamPrefix(queue, stream))...)
		}
	}
	if err := t.dropRows(rows, d); err != nil {
		return err
	}
	return t.dropDead(func(r *deadRow) bool { return r.stream.ID == stream }, d)
}

func (t *txn) dropRows(rows [][]byte, d *Dropped) error {
	for _, k := range rows {
		m, err := readRowMeta(k, t.outbox.Get(k))
		if err != nil {
			return err
		}
		if _, err := t.deleteRow(m.dest, m.stream, m.seq); err != nil {
			return err
		}
		d.Rows, d.Entries = d.Rows+1, d.Entries+m.entries
	}
	return nil
}

func (t *txn) dropDead(which func(*deadRow) bool, d *Dropped) error {
	var letters [][]byte
	err := t.dead.ForEach(func(k, v []byte) error {
		r, err := decodeDeadRow(k, v)
		if err == nil && which(&r) {
			letters = append(letters, clone(k))
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, k := range letters {
		t.delta.countDead(k, t.dead.Get(k), -1)
		if err := t.Delete("delete dead", t.dead, k); err != nil {
			return err
		}
		d.Dead++
	}
	return nil
}
