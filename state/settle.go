package state

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

// Settle implements outbox.Queue. Batches that are gone already count for nothing, so that a settlement may come
// twice. Settlements share transactions with Commit.
func (db *DB) Settle(ctx context.Context, settlements []outbox.Settlement) error {
	if len(settlements) == 0 {
		return nil
	}
	var size int64
	for i := range settlements {
		for j := range settlements[i].Dead {
			size += int64(len(settlements[i].Dead[j].Batch.Frame))
		}
	}
	return db.update(ctx, size, func(t *txn) error {
		for i := range settlements {
			if err := t.settle(&settlements[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *txn) settle(s *outbox.Settlement) error {
	if _, known := t.known.destID(s.Dest); !known && len(s.Dead) == 0 {
		return nil // it never had rows
	}
	dest, err := t.destID(s.Dest)
	if err != nil {
		return err
	}
	var gone []uint64
	for _, seq := range s.Seqs {
		if s.Gone > 0 {
			if err := t.missBeside(dest, s.Stream, seq); err != nil {
				return err
			}
		}
		was, err := t.deleteRow(queueOf(dest, s.Blobs), s.Stream, seq)
		if err != nil {
			return err
		}
		if !was {
			gone = append(gone, seq)
		}
	}
	for i := range s.Dead {
		if slices.Contains(gone, s.Dead[i].Batch.Seq) {
			continue // settled before; the letter may have been queued again or dropped since
		}
		if err := t.bury(dest, s.Stream, &s.Dead[i]); err != nil {
			return err
		}
	}
	if len(gone) == len(s.Seqs) && len(s.Seqs) > 0 {
		return nil
	}
	return t.settleFacts(dest, s)
}

// deleteRow takes a row out of the outbox, and says whether it was there.
func (t *txn) deleteRow(dest uint32, stream, seq uint64) (bool, error) {
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
	t.delta.settled = true
	return true, nil
}

// bury puts a dead letter.
func (t *txn) bury(dest uint32, stream uint64, l *outbox.DeadLetter) error {
	row := deadRow{dest: dest, letter: *l}
	f, found, err := t.file(tail.FileID(stream))
	if err != nil {
		return err
	}
	if found {
		row.stream = f.facts.Stream
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

func (d *delta) countDead(k, v []byte, sign int64) {
	d.dead += sign
	d.deadBytes += sign * int64(len(k)+len(v))
}

// settleFacts notes at the file what a plain server took or did not get. A file that belongs to another destination
// by now is read again for that one, so it does not matter there.
func (t *txn) settleFacts(dest uint32, s *outbox.Settlement) error {
	if s.Withheld == 0 && !s.Plain {
		return nil
	}
	old, found, err := t.file(tail.FileID(s.Stream))
	if err != nil || !found || old.dest != dest {
		return err
	}
	row := old
	row.facts.Withheld += s.Withheld
	row.facts.Plain = row.facts.Plain || s.Plain
	if row.facts == old.facts {
		return nil
	}
	return t.putFile("put facts", row, old, true)
}

// hasRows says whether anything of a stream waits in the outbox, for any destination.
func (t *txn) hasRows(stream uint64) bool {
	c := t.outbox.Cursor()
	dests := t.dests.Cursor()
	for k, _ := dests.First(); k != nil; k, _ = dests.Next() {
		for _, blobs := range []bool{false, true} {
			prefix := streamPrefix(queueOf(binary.BigEndian.Uint32(k), blobs), stream)
			if row, _ := c.Seek(prefix); bytes.HasPrefix(row, prefix) {
				return true
			}
		}
	}
	return false
}
