package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// Rejoin moves a file to what its server has: the lines before Cursor are there, and the file continues after them in a
// new generation. See docs/internals/adr/0041-ledger.md.
type Rejoin struct {
	Expect tail.Cursor // must equal the stored cursor, else nothing happens (tail.ErrStale)
	Epoch  string      // in front at the server; "": this state's
	Cursor tail.Cursor // behind the lines that both have, in the generation that begins there
	Marks  []tail.Mark // of all bytes before it
	// Letters are dead letters that are sent before what follows, in generations between the one before and Cursor's.
	Letters []RetriedLetter
}

// RetriedLetter is a dead letter that is sent in another generation than the one that it was refused in.
type RetriedLetter struct {
	Key        DeadKey
	Generation uint32
	RewoundTo  int64 // first line of the generation
}

// ReasonReplaced is the reason of a dead letter with lines of an earlier generation when its file rejoined. They are no
// longer on disk. Who rejoins the file compares them with its server, and drops them or queues them again.
const ReasonReplaced = "replaced"

// Rejoin moves a file in one transaction. Cursor, marks and epoch change. Queued lines and dead letters are removed,
// because they are read again behind the cursor. A marker that tells the server where the generation begins is queued.
// Queued artifacts stay. ErrUnknownFile: nothing is remembered of the file.
func (db *DB) Rejoin(ctx context.Context, id tail.FileID, r Rejoin) error {
	err := db.Transact(ctx, 0, func(t *Tx) error { return t.rejoin(id, &r) })
	if err != nil && !errors.Is(err, tail.ErrStale) {
		return fmt.Errorf("rejoin file %d: %w", id, err)
	}
	return err
}

func (t *Tx) rejoin(id tail.FileID, r *Rejoin) error {
	old, found, err := t.file(id)
	switch {
	case err != nil:
		return err
	case !found:
		return ErrUnknownFile
	case old.tracked.Cursor != r.Expect:
		return tail.ErrStale
	}
	if err := t.cutMarks(id, -1); err != nil {
		return err
	}
	if err := t.putMarks(id, r.Marks); err != nil {
		return err
	}
	row := old
	row.tracked.Cursor, row.tracked.Provisional, row.tracked.Verified = r.Cursor, tail.Provisional{}, tail.Stat{}
	row.routing.Stream.Epoch, row.routing.RewoundTo = r.Epoch, r.Cursor.Line
	row.routing.Withheld, row.routing.Plain, row.routing.Odd = 0, false, old.routing.Odd.Before(r.Cursor.Line)
	if err := t.putFile("rejoin", row, old, true); err != nil {
		return err
	}
	if err := t.dropUnsentPast(&old, r.Epoch); err != nil {
		return err
	}
	if err := t.removeLines(old.dest, uint64(id), old.tracked.Cursor.Generation); err != nil {
		return err
	}
	if err := t.removeReread(old.dest, uint64(id), old.tracked.Cursor.Generation, r.Cursor.Line); err != nil {
		return err
	}
	if err := t.putLetters(uint64(id), r.Letters); err != nil {
		return err
	}
	at := protocol.Position{Offset: r.Cursor.Offset, Line: r.Cursor.Line}
	return t.putBatch(row.dest, uint64(id), &outbox.Batch{
		Kind: outbox.Marker, Generation: r.Cursor.Generation, RewoundTo: r.Cursor.Line, From: at, To: at,
	})
}

// eachLine calls fn with the queued batches of a stream's lines, and the checksum of each frame. fn may delete the row.
func (t *Tx) eachLine(dest uint32, stream uint64, fn func(b *outbox.Batch, sum uint32) error) error {
	for _, k := range kv.Keys(t.outbox, streamPrefix(queueOf(dest, false), stream)) {
		b, _, sum, err := decodeBatchRow(k, t.outbox.Get(k))
		if err == nil && b.Items == 0 {
			if _, _, b.Seq, err = splitRowKey(k); err == nil {
				err = fn(&b, sum)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeLines removes a stream's queued lines from the outbox. Lines of ended generations are on no disk any more: they
// become dead letters.
func (t *Tx) removeLines(dest uint32, stream uint64, generation uint32) error {
	return t.eachLine(dest, stream, func(b *outbox.Batch, _ uint32) error {
		if b.Generation != generation && b.Entries > 0 {
			letter := outbox.DeadLetter{Batch: *b, Line: b.From.Line, Reason: ReasonReplaced, At: t.Now}
			if err := t.putDeadLetter(dest, stream, &letter); err != nil {
				return err
			}
		}
		_, err := t.deleteRow(dest, stream, b.Seq)
		return err
	})
}

// dropUnsentPast removes what is kept of the generations that a file's server does not have under their numbers: those
// from the first queued one on, and all of them if the file goes on in another epoch.
func (t *Tx) dropUnsentPast(old *fileRow, epoch string) error {
	id, from := old.tracked.File.ID, uint32(0)
	if epoch == old.routing.Stream.Epoch {
		from = old.tracked.Cursor.Generation
		err := t.eachLine(old.dest, uint64(id), func(b *outbox.Batch, _ uint32) error {
			from = min(from, b.Generation)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return t.dropPast(id, from, math.MaxUint32)
}

// removeReread removes the dead letters of a stream whose lines are read again: those of a generation from a line on.
func (t *Tx) removeReread(dest uint32, stream uint64, generation uint32, line int64) error {
	for _, k := range kv.Keys(t.dead, nil) {
		v := t.dead.Get(k)
		r, err := decodeDeadRow(k, v)
		l := &r.letter
		ours := r.dest == dest && r.stream.ID == stream && l.Batch.Generation == generation && l.Line >= line
		if err == nil && ours && l.Batch.Items == 0 && l.Reason != ReasonReplaced {
			err = t.deleteDead(k, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// putLetters queues dead letters of a stream in other generations. Those that are gone are passed over.
func (t *Tx) putLetters(stream uint64, letters []RetriedLetter) error {
	for _, l := range letters {
		_, err := t.removeDead([]DeadKey{l.Key}, func(t *Tx, r *deadRow) error {
			was := r.letter.Batch.Generation
			if err := t.dropPast(tail.FileID(stream), was, was); err != nil { // its number lacks these lines
				return err
			}
			r.letter.Batch.Generation, r.letter.Batch.RewoundTo = l.Generation, l.RewoundTo
			t.delta.requeued++
			return t.putBatch(r.dest, stream, &r.letter.Batch)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Stored removes queued lines of a file that its server turned out to have: those of a generation, up to a line. It
// returns how many.
func (o *Outbox) Stored(ctx context.Context, id tail.FileID, generation uint32, line int64) (entries int64, err error) {
	err = o.db.Transact(ctx, 0, func(t *Tx) error {
		entries = 0
		file, found, err := t.file(id)
		if err != nil || !found {
			return err
		}
		return t.eachLine(file.dest, uint64(id), func(b *outbox.Batch, _ uint32) error {
			if b.Generation != generation || b.To.Line > line || b.NoNewline {
				return nil
			}
			entries += int64(b.Entries)
			_, err := t.deleteRow(file.dest, uint64(id), b.Seq)
			return err
		})
	})
	if err != nil {
		return 0, fmt.Errorf("remove stored lines of file %d: %w", id, err)
	}
	return entries, nil
}

// Rewinds returns the lowest line at which a queued generation of a file begins, math.MaxInt64 without any: what its
// server has from there on will be replaced.
func (o *Outbox) Rewinds(ctx context.Context, id tail.FileID) (int64, error) {
	line := int64(math.MaxInt64)
	err := o.eachQueued(ctx, id, func(b *outbox.Batch) bool {
		if b.From.Line <= b.RewoundTo {
			line = min(line, b.RewoundTo)
		}
		return true
	})
	return line, err
}

// FirstQueued returns the first queued batch of a file's lines, without its content. ok is false when none waits.
func (o *Outbox) FirstQueued(ctx context.Context, id tail.FileID) (first outbox.Batch, ok bool, err error) {
	err = o.eachQueued(ctx, id, func(b *outbox.Batch) bool {
		first, ok = *b, true
		return false
	})
	return first, ok, err
}

// eachQueued calls fn with the queued batches of a file's lines, in order and without their content, until it returns
// false.
func (o *Outbox) eachQueued(ctx context.Context, id tail.FileID, fn func(b *outbox.Batch) bool) error {
	file, found, err := o.db.Files.get(ctx, id)
	if err != nil || !found {
		return err
	}
	err = o.db.View(ctx, func(s *kv.Snapshot) error {
		rows := s.Bucket(bucketOutbox)
		for _, k := range kv.Keys(rows, streamPrefix(queueOf(file.dest, false), uint64(id))) {
			b, _, _, err := decodeBatchRow(k, rows.Get(k))
			if err != nil {
				return err
			}
			if b.Frame, b.Edges = nil, nil; b.Items == 0 && !fn(&b) {
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read queue of file %d: %w", id, err)
	}
	return nil
}

// Renumber moves the queued lines of a file that is gone after what its server has: they continue in epoch ("": this
// state's), in the generations after the given one. The first of them begins at the first queued line. Nothing on disk
// can be compared with the server's lines, and the queue may hold the only copy of these lines.
func (db *DB) Renumber(ctx context.Context, id tail.FileID, epoch string, after uint32) error {
	err := db.Transact(ctx, 0, func(t *Tx) error { return t.renumber(id, epoch, after) })
	if err != nil {
		return fmt.Errorf("renumber queued lines of file %d: %w", id, err)
	}
	return nil
}

func (t *Tx) renumber(id tail.FileID, epoch string, after uint32) error {
	old, found, err := t.file(id)
	if err != nil || !found {
		return cmp.Or(err, ErrUnknownFile)
	}
	if err := t.dropUnsentPast(&old, epoch); err != nil {
		return err
	}
	row, first := old, (*outbox.Batch)(nil)
	row.routing.Stream.Epoch = epoch
	err = t.eachLine(old.dest, uint64(id), func(b *outbox.Batch, sum uint32) error {
		if detach(b, sum) != nil {
			return nil //nolint:nilerr // a damaged batch stays, and becomes a dead letter when it is to be sent
		}
		if first == nil {
			first = new(*b)
		}
		if b.Generation == first.Generation {
			b.RewoundTo = first.From.Line
		}
		b.Generation = after + 1 + (b.Generation - first.Generation)
		row.tracked.Cursor.Generation = max(row.tracked.Cursor.Generation, b.Generation)
		row.routing.RewoundTo = b.RewoundTo
		if _, err := t.deleteRow(old.dest, uint64(id), b.Seq); err != nil {
			return err
		}
		return t.putBatch(old.dest, uint64(id), b)
	})
	if err != nil || first == nil {
		return err
	}
	return t.putFile("renumber", row, old, true)
}
