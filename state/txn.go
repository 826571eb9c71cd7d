package state

import (
	"bytes"
	"context"
	"fmt"

	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// txn is a write transaction under way, and what it will change in memory once it is durable.
type txn struct {
	*kv.Tx
	db    *DB
	known *index
	delta delta

	dests, files, prefixes, outbox, dead *kv.Bucket
	sessions, messages                   *kv.Bucket
	understoodCap                        int64
}

// memory makes the index follow the file.
type memory struct{ db *DB }

// Begin implements kv.Memory.
func (m *memory) Begin(tx *kv.Tx) kv.Changes {
	t := &txn{Tx: tx, db: m.db, known: &m.db.index, understoodCap: m.db.opt.understoodCap}
	t.dests, t.files = tx.Bucket(bucketDests), tx.Bucket(bucketFiles)
	t.prefixes, t.dead = tx.Bucket(bucketMarks), tx.Bucket(bucketDead)
	t.outbox = tx.Bucket(bucketOutbox)
	t.sessions, t.messages = tx.Bucket(bucketProjections), tx.Bucket(bucketFolds)
	t.outbox.FillPercent = 0.9 // rows of a stream come in ascending order
	return t
}

// update runs apply in a write transaction, as kv.DB.Update does.
func (db *DB) update(ctx context.Context, size int64, apply func(*txn) error) error {
	return db.file.Update(ctx, size, func(tx *kv.Tx) error { return apply(tx.Changes(db.memory).(*txn)) })
}

// view runs a read transaction, as kv.DB.View does.
func (db *DB) view(ctx context.Context, fn func(*kv.Snapshot) error) error {
	return db.file.View(ctx, fn)
}

// Finish implements kv.Changes.
func (t *txn) Finish() error {
	t.Moved(t.delta.bytes())
	return t.findEnds()
}

// Apply implements kv.Changes.
func (t *txn) Apply() {
	db, d := t.db, &t.delta
	db.index.apply(d)
	if db.Notify != nil {
		for _, dest := range d.arrived(&db.index) {
			db.Notify(dest)
		}
	}
	for _, m := range d.missed {
		if db.Missed != nil {
			db.Missed(m)
		}
	}
	if len(d.removed) > 0 || d.deadBytes < 0 {
		db.roomCheck()
	}
}

// file reads a file's row.
func (t *txn) file(id tail.FileID) (r fileRow, found bool, err error) {
	v := t.files.Get(fileKey(id))
	if v == nil {
		return fileRow{}, false, nil
	}
	r, err = decodeFileRow(id, v, nil)
	return r, err == nil, err
}

// putFile stores a file's row in place of old, whose place may have been empty. step as in kv.Tx.Put.
func (t *txn) putFile(step string, r, old fileRow, found bool) error {
	if err := t.Put(step, t.files, fileKey(r.tracked.File.ID), r.encode()); err != nil {
		return err
	}
	t.delta.withheld += r.facts.Withheld - old.facts.Withheld
	if found {
		t.delta.countFile(old.dest, -1)
	}
	t.delta.countFile(r.dest, 1)
	return nil
}

// destID answers the number of a destination, and gives it one when it has none. "" is 0.
func (t *txn) destID(url string) (uint32, error) {
	if url == "" {
		return 0, nil
	}
	if id, ok := t.delta.names[url]; ok {
		return id, nil
	}
	if id, ok := t.known.destID(url); ok {
		return id, nil
	}
	n, err := t.dests.NextSequence()
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

func (t *txn) putDest(step string, id uint32, r destRow) error {
	v, err := r.encode(id)
	if err != nil {
		return err
	}
	return t.Put(step, t.dests, destKey(id), v)
}

// findEnds looks up what are now the first and the last rows of the streams that rows were taken from.
func (t *txn) findEnds() error {
	for k := range t.delta.ends {
		prefix := streamPrefix(k.dest, k.stream)
		c := t.outbox.Cursor()
		key, v := c.Seek(prefix)
		if !bytes.HasPrefix(key, prefix) {
			continue
		}
		first, err := readRowMeta(key, v)
		if err != nil {
			return err
		}
		// Going back is not safe: Prev stops at pages that deletions of this transaction emptied. Nor is it needed,
		// for rows mostly leave from the front.
		last := t.lastSeq(k)
		if t.outbox.Get(rowKey(k.dest, k.stream, last)) == nil {
			for ; bytes.HasPrefix(key, prefix); key, _ = c.Next() {
				_, _, last, _ = splitRowKey(key)
			}
		}
		t.delta.ends[k] = ends{first: first.seq, last: last, firstAt: first.at}
	}
	return nil
}

// lastSeq answers the highest seq that a stream has had rows with since it last had none.
func (t *txn) lastSeq(k streamKey) uint64 {
	for i := len(t.delta.added) - 1; i >= 0; i-- {
		if m := &t.delta.added[i]; m.dest == k.dest && m.stream == k.stream {
			return m.seq
		}
	}
	return t.known.lastSeq(k)
}
