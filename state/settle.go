package state

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// Settle is SettleLater that does not wait.
func (o *Outbox) Settle(ctx context.Context, settlements []outbox.Settlement) error {
	return o.SettleLater(ctx, settlements, nil)
}

// SettleLater implements outbox.Queue: until now is closed it waits for another transaction to share. It ignores
// batches that are gone already, so that a settlement may come twice: after a crash the daemon sends again what the
// server took but the file still has.
func (o *Outbox) SettleLater(ctx context.Context, settlements []outbox.Settlement, now <-chan struct{}) error {
	if len(settlements) == 0 {
		return nil
	}
	var size int64
	for i := range settlements {
		for j := range settlements[i].Dead {
			size += int64(len(settlements[i].Dead[j].Batch.Frame))
		}
	}
	return o.db.updateLater(ctx, size, now, func(t *Tx) error {
		if err := t.putLedgers(settlements); err != nil { // first: what is refused now is not queued again
			return err
		}
		for i := range settlements {
			if err := t.ackRows(&settlements[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// putLedgers keeps each server's last ledger in the transaction that acknowledges: a state with a higher count than its
// acknowledgements would believe that the server went back in time. If another store or version answers than before, it
// queues the dead letters again, because the server that refused them is gone.
func (t *Tx) putLedgers(settlements []outbox.Settlement) error {
	last := map[string]protocol.Ledger{}
	for i := range settlements {
		if s := &settlements[i]; s.Ledger.Store != "" {
			last[s.Dest] = s.Ledger
		}
	}
	for dest, ledger := range last {
		id, err := t.Destination(dest)
		if err != nil {
			return err
		}
		_, row, err := decodeDestRow(destKey(id), t.dests.Get(destKey(id)))
		if err != nil {
			return err
		}
		changed := row.newServerVersion(ledger.Store+" "+ledger.Version, time.Now())
		if changed {
			if err := t.retryDeadLetters(id); err != nil {
				return err
			}
		}
		if row.Learned.Ledger == ledger && !changed {
			continue
		}
		row.Learned.Ledger = ledger
		if err := t.putDest("put ledger", id, row); err != nil {
			return err
		}
	}
	return nil
}

// ackRows removes rows, adds dead letters and records what a plain server did, all in one transaction. A row and its
// dead letter never exist at once, and one of them always exists: otherwise a refused line could be lost.
func (t *Tx) ackRows(s *outbox.Settlement) error {
	if _, known := t.known.destID(s.Dest); !known && len(s.Dead) == 0 {
		return nil // it never had rows
	}
	dest, err := t.Destination(s.Dest)
	if err != nil {
		return err
	}
	var gone []uint64
	for _, seq := range s.Seqs {
		was, err := t.ackRow(dest, s, seq)
		if err != nil {
			return err
		}
		if !was {
			gone = append(gone, seq)
		}
	}
	for i := range s.Dead {
		if slices.Contains(gone, s.Dead[i].Batch.Seq) {
			continue // acknowledged before; a caller may have retried or dropped the dead letter since
		}
		if err := t.putDeadLetter(dest, s.Stream, &s.Dead[i]); err != nil {
			return err
		}
	}
	if len(gone) == len(s.Seqs) && len(s.Seqs) > 0 {
		return nil
	}
	return t.noteRouting(dest, s)
}

// ackRow removes one row, and returns false when it was gone already.
func (t *Tx) ackRow(dest uint32, s *outbox.Settlement, seq uint64) (bool, error) {
	if s.Gone > 0 {
		if err := t.blobNotSent(dest, s.Stream, seq); err != nil {
			return false, err
		}
	}
	return t.deleteRow(queueOf(dest, s.Blobs), s.Stream, seq)
}

// blobNotSent tells the dependents of a blob that is acknowledged without having been sent, while its row is still
// there.
func (t *Tx) blobNotSent(dest uint32, stream, seq uint64) error {
	k := rowKey(queueOf(dest, true), stream, seq)
	v := t.outbox.Get(k)
	if v == nil {
		return nil
	}
	b, _, _, err := decodeBatchRow(k, v)
	if err != nil {
		return err
	}
	return t.db.dependents.BlobNotSent(t, dest, tail.FileID(stream), &b.Blob)
}

// putDeadLetter stores a dead letter. Its row carries the stream's routing, because the file may be forgotten first.
func (t *Tx) putDeadLetter(dest uint32, stream uint64, l *outbox.DeadLetter) error {
	row := deadRow{dest: dest, letter: *l}
	f, found, err := t.file(tail.FileID(stream))
	if err != nil {
		return err
	}
	if found {
		row.stream = f.routing.Stream
	}
	row.stream.ID = stream
	k, v := DeadKey{Seq: l.Batch.Seq, Line: l.Line}.bytes(), row.encode()
	if old := t.dead.Get(k); old != nil {
		t.delta.countDead(k, old, -1)
	}
	if err := t.Put("put dead", t.dead, k, v); err != nil {
		return err
	}
	t.delta.countDead(k, v, 1)
	return nil
}

// noteRouting notes at the file what a plain server took or did not get. It does not matter for a file that belongs to
// another destination by now, because that one is sent the file from its beginning.
func (t *Tx) noteRouting(dest uint32, s *outbox.Settlement) error {
	if s.Withheld == 0 && !s.Plain {
		return nil
	}
	old, found, err := t.file(tail.FileID(s.Stream))
	if err != nil || !found || old.dest != dest {
		return err
	}
	row := old
	row.routing.Withheld += s.Withheld
	row.routing.Plain = row.routing.Plain || s.Plain
	if row.routing == old.routing {
		return nil
	}
	return t.putFile("put routing", row, old, true)
}

// hasRows reports whether the outbox has anything of a stream, for any destination.
func (t *Tx) hasRows(stream uint64) bool {
	c := t.outbox.Cursor()
	for _, queue := range t.queues() {
		prefix := streamPrefix(queue, stream)
		if row, _ := c.Seek(prefix); bytes.HasPrefix(row, prefix) {
			return true
		}
	}
	return false
}

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
