package state

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// Tx is a write transaction under way, and what it will change in memory. The memory changes only after the disk has
// the transaction: a failed commit must leave no trace, or the daemon would wait for rows that do not exist.
type Tx struct {
	*kv.Tx
	db    *DB
	known *index // as the last commit left it
	delta delta  // what this transaction changes of it

	dests, files, marks, outbox, dead *kv.Bucket
}

// memory makes the index follow the file.
type memory struct{ db *DB }

// Begin implements kv.Memory.
func (m *memory) Begin(tx *kv.Tx) kv.Changes {
	t := &Tx{Tx: tx, db: m.db, known: &m.db.index}
	t.dests, t.files = tx.Bucket(bucketDests), tx.Bucket(bucketFiles)
	t.marks, t.dead = tx.Bucket(bucketMarks), tx.Bucket(bucketDead)
	t.outbox = tx.Bucket(bucketOutbox)
	// Files that are found together have ascending ids, and rows of a stream come in ascending order: bbolt's own half of
	// a page would stay half.
	t.files.FillPercent, t.outbox.FillPercent = 0.9, 0.9
	return t
}

// Transact runs apply in a write transaction, as kv.DB.Update does: together with the requests of other callers, and
// again when one of them failed.
func (db *DB) Transact(ctx context.Context, size int64, apply func(*Tx) error) error {
	return db.updateLater(ctx, size, nil, apply)
}

// updateLater is Transact for what may wait for another transaction until now is closed.
func (db *DB) updateLater(ctx context.Context, size int64, now <-chan struct{}, apply func(*Tx) error) error {
	return db.UpdateLater(ctx, size, now, func(tx *kv.Tx) error { return apply(tx.Changes(db.memory).(*Tx)) })
}

// Finish implements kv.Changes.
func (t *Tx) Finish() error {
	t.Moved(t.delta.bytes())
	return t.findEnds()
}

// Apply implements kv.Changes. It runs after the disk has the transaction: a drainer that is woken finds its rows.
func (t *Tx) Apply() {
	db, d := t.db, &t.delta
	db.index.apply(d)
	if db.Listener != nil {
		for _, dest := range d.arrived(&db.index) {
			db.Listener.RowsQueued(dest)
		}
	}
	if len(d.removed) > 0 || d.deadBytes < 0 {
		db.recheckCapacity()
	}
}

// file reads a file's row.
func (t *Tx) file(id tail.FileID) (r fileRow, found bool, err error) {
	v := t.files.Get(fileKey(id))
	if v == nil {
		return fileRow{}, false, nil
	}
	r, err = decodeFileRow(id, v, nil)
	return r, err == nil, err
}

// putFile stores a file's row instead of old; found is false when there was none. step is as in kv.Tx.Put.
func (t *Tx) putFile(step string, r, old fileRow, found bool) error {
	if err := t.Put(step, t.files, fileKey(r.tracked.File.ID), r.encode()); err != nil {
		return err
	}
	t.delta.odd.add(&old, -1)
	t.delta.odd.add(&r, 1)
	if found {
		t.delta.countFile(old.dest, -1)
	}
	t.delta.countFile(r.dest, 1)
	return nil
}

// Destination returns the number of a destination, and assigns one to a URL that has none. "" is 0. Keys hold numbers
// because they are short, and because all rows of a destination must be neighbours whatever its URL is.
func (t *Tx) Destination(url string) (uint32, error) {
	if url == "" {
		return 0, nil
	}
	if id, ok := t.delta.names[url]; ok {
		return id, nil
	}
	if id, ok := t.known.destID(url); ok {
		return id, nil
	}
	n, err := t.NextSequence(bucketDests)
	if err != nil {
		return 0, fmt.Errorf("number destination: %w", err)
	}
	id := uint32(n)
	if err := t.putDest("put destination", id, destRow{URL: url}); err != nil {
		return 0, err
	}
	if t.delta.names == nil {
		t.delta.names = map[string]uint32{}
	}
	t.delta.names[url] = id
	return id, nil
}

func (t *Tx) putDest(step string, id uint32, r destRow) error {
	v, err := r.encode(id)
	if err != nil {
		return err
	}
	return t.Put(step, t.dests, destKey(id), v)
}

// Destinations returns the numbers of all destinations there ever were.
func (t *Tx) Destinations() (ids []uint32) {
	c := t.dests.Cursor()
	for k, _ := c.First(); k != nil; k, _ = c.Next() {
		ids = append(ids, binary.BigEndian.Uint32(k))
	}
	return ids
}

// queues returns the numbers that keys of outbox rows can begin with: two for each destination.
func (t *Tx) queues() (ids []uint32) {
	for _, id := range t.Destinations() {
		ids = append(ids, id, queueOf(id, true))
	}
	return ids
}

// putBatch queues a batch and sets its Seq. Numbers come from the bucket's sequence, which is part of the transaction
// and only grows: a number that was given once names no other batch, also after a crash or when the outbox was empty.
// Otherwise a late or repeated acknowledgement could remove a batch that was never sent.
func (t *Tx) putBatch(dest uint32, stream uint64, b *outbox.Batch) error {
	dest = queueOf(dest, b.Kind == outbox.Blob)
	seq, err := t.NextSequence(bucketOutbox)
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

// deleteRow removes a row from the outbox. It returns false when there was none.
func (t *Tx) deleteRow(dest uint32, stream, seq uint64) (bool, error) {
	k := rowKey(dest, stream, seq)
	v := t.outbox.Get(k)
	if v == nil {
		return false, nil
	}
	m, err := readRowMeta(k, v)
	if err != nil {
		return false, err
	}
	if err := t.Delete("delete row", t.outbox, k); err != nil {
		return false, err
	}
	t.delta.remove(m)
	t.delta.tookRows = true
	return true, nil
}
