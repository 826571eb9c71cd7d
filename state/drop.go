package state

import (
	"context"
	"fmt"

	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// Dropped counts what Drop removed.
type Dropped struct{ Rows, Entries, Dead int64 }

// Drop removes everything of some files that waits to be sent, for any destination, and their dead letters. What is in
// flight may still arrive. Cursors stay, so that nothing of it is read again.
func (o *Outbox) Drop(ctx context.Context, ids []tail.FileID) (d Dropped, err error) {
	err = o.db.Transact(ctx, 0, func(t *Tx) error {
		d = Dropped{}
		for _, id := range ids {
			if err := t.db.dependents.RowsDropped(t, id); err != nil {
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

// DropDestinations removes everything that waits for some destinations, given by their normalised URLs, and their dead
// letters. What is in flight may still arrive.
func (o *Outbox) DropDestinations(ctx context.Context, urls []string) (d Dropped, err error) {
	err = o.db.Transact(ctx, 0, func(t *Tx) error {
		d = Dropped{}
		for _, url := range urls {
			id, known := t.known.destID(url)
			if !known {
				continue
			}
			if err := t.dropDestination(id, &d); err != nil {
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

func (t *Tx) dropDestination(id uint32, d *Dropped) error {
	rows := append(kv.Keys(t.outbox, destKey(id)), kv.Keys(t.outbox, destKey(queueOf(id, true)))...)
	if err := t.dropRows(rows, d); err != nil {
		return err
	}
	if err := t.dropDead(func(r *deadRow) bool { return r.dest == id }, d); err != nil {
		return err
	}
	return t.db.dependents.DestinationDropped(t, id)
}

// drop removes a stream's rows and dead letters.
func (t *Tx) drop(stream uint64, d *Dropped) error {
	var rows [][]byte
	for _, queue := range t.queues() {
		rows = append(rows, kv.Keys(t.outbox, streamPrefix(queue, stream))...)
	}
	if err := t.dropRows(rows, d); err != nil {
		return err
	}
	return t.dropDead(func(r *deadRow) bool { return r.stream.ID == stream }, d)
}

func (t *Tx) dropRows(rows [][]byte, d *Dropped) error {
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

func (t *Tx) dropDead(which func(*deadRow) bool, d *Dropped) error {
	var letters [][]byte // a cursor skips keys when its bucket is deleted from on the way
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
		if err := t.deleteDead(k, t.dead.Get(k)); err != nil {
			return err
		}
		d.Dead++
	}
	return nil
}
