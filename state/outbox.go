package state

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// Outbox is the batches that wait for a server, of all destinations, and what each server taught. What is asked often
// is answered from memory: an idle daemon must not read the disk, and one with a million rows must not walk them.
type Outbox struct{ db *DB }

// Pick implements outbox.Queue, from memory alone. skip must not call the state.
func (o *Outbox) Pick(dest string, oldest bool, skip func(stream, last uint64) bool) (stream uint64, ok bool) {
	if skip == nil {
		skip = func(uint64, uint64) bool { return false }
	}
	x := &o.db.index
	x.mu.Lock()
	defer x.mu.Unlock()
	q := x.queues[x.names[dest]]
	if q == nil {
		return 0, false
	}
	if oldest {
		return q.pickOldest(skip)
	}
	for e := q.newest.Front(); e != nil; e = e.Next() {
		if w := e.Value.(*waiting); !skip(w.stream, w.last) {
			return w.stream, true
		}
	}
	return 0, false
}

// PickBlobs implements outbox.Queue, as Pick does.
func (o *Outbox) PickBlobs(dest string, skip func(stream, last uint64) bool) (stream uint64, ok bool) {
	x := &o.db.index
	x.mu.Lock()
	defer x.mu.Unlock()
	id, known := x.names[dest]
	if q := x.queues[queueOf(id, true)]; known && q != nil {
		return q.pickOldest(skip)
	}
	return 0, false
}

// pickOldest returns the stream that waits longest and is not skipped.
func (q *destQueue) pickOldest(skip func(stream, last uint64) bool) (stream uint64, ok bool) {
	for _, w := range q.oldest {
		if !skip(w.stream, w.last) {
			return w.stream, true
		}
	}
	return 0, false
}

// Peek implements outbox.Queue. A stream's own MaxEntries limits it as max.Entries does. A batch whose last line had no
// newline is the last one returned, because a request states that of its last line only. A limit of 0 is no limit.
func (o *Outbox) Peek(
	ctx context.Context, dest string, stream, after uint64, max outbox.Limits,
) (outbox.StreamBatches, error) {
	id, ok := o.db.index.destID(dest)
	if !ok {
		return outbox.StreamBatches{}, nil
	}
	var p outbox.StreamBatches
	err := o.db.View(ctx, func(tx *kv.Snapshot) (err error) {
		p, err = readBatches(tx, rowKey(queueOf(id, max.Blobs), stream, after), max)
		return err
	})
	if err != nil {
		return outbox.StreamBatches{}, fmt.Errorf("read outbox: %w", err)
	}
	return p, nil
}

// readBatches collects the rows after a key. It copies them: the drainer holds them while it sends, and a row may leave
// the file meanwhile.
func readBatches(tx *kv.Snapshot, key []byte, max outbox.Limits) (outbox.StreamBatches, error) {
	_, stream, after, _ := splitRowKey(key)
	p := outbox.StreamBatches{Stream: outbox.Stream{ID: stream}}
	file := tail.FileID(stream)
	if v := tx.Bucket(bucketFiles).Get(fileKey(file)); v != nil {
		f, err := decodeFileRow(file, v, nil)
		if err != nil {
			return p, err
		}
		p.Stream = f.routing.Stream
	}
	if n := p.Stream.MaxEntries; n > 0 && (max.Entries <= 0 || n < max.Entries) {
		max.Entries = n
	}
	prefix := key[:rowKeySize-8]
	c := tx.Bucket(bucketOutbox).Cursor()
	k, v := c.Seek(key)
	if bytes.Equal(k, key) && after > 0 {
		k, v = c.Next()
	}
	var entries int
	var raw, size int64
	for ; bytes.HasPrefix(k, prefix); k, v = c.Next() {
		b, _, sum, err := decodeBatchRow(k, v)
		if err != nil {
			return p, err
		}
		if max.OnlyObjects && b.Kind != outbox.Objects {
			continue
		}
		if !fits(&p, &b, entries, raw, max) {
			break
		}
		_, _, b.Seq, _ = splitRowKey(k)
		if err := detach(&b, sum); err != nil {
			return p, err
		}
		size += int64(len(v))
		p.Batches = append(p.Batches, b)
		entries, raw = entries+b.Entries, raw+b.Raw
	}
	tx.Moved(size)
	return p, nil
}

// fits reports whether a batch may follow those already collected. The first one always fits, or a line larger than the
// limits would never be sent. Batches of two generations are never mixed: the server removes lines in between.
func fits(p *outbox.StreamBatches, b *outbox.Batch, entries int, raw int64, max outbox.Limits) bool {
	if len(p.Batches) == 0 {
		return true
	}
	last := &p.Batches[len(p.Batches)-1]
	return b.Generation == last.Generation && !last.NoNewline &&
		(max.Entries <= 0 || entries+b.Entries <= max.Entries) &&
		(max.Raw <= 0 || raw+b.Raw <= max.Raw)
}

// Queued is the rows of one file that wait for one destination.
type Queued struct {
	Dest string
	File tail.FileID
	// Blobs is true for the blobs of the file's session; false for its lines and what was derived from them.
	Blobs bool
	Waiting
}

// Queued lists what waits, the longest waiting first. It comes from memory.
func (o *Outbox) Queued() []Queued {
	x := &o.db.index
	x.mu.Lock()
	type item struct {
		Queued
		first uint64
	}
	var all []item
	for dest, q := range x.queues {
		for id, w := range q.streams {
			all = append(all, item{Queued{
				Dest: x.urls[dest&^blobQueue], File: tail.FileID(id), Blobs: dest&blobQueue != 0, Waiting: w.waiting(w.firstAt),
			}, w.first})
		}
	}
	x.mu.Unlock()
	slices.SortFunc(all, func(a, b item) int { return cmp.Compare(a.first, b.first) })
	out := make([]Queued, len(all))
	for i := range all {
		out[i] = all[i].Queued
	}
	return out
}

// Learned implements outbox.Memory. Nothing is learned of a destination that has no row yet.
func (o *Outbox) Learned(ctx context.Context, dest string) (outbox.Learned, error) {
	id, ok := o.db.index.destID(dest)
	if !ok {
		return outbox.Learned{}, nil
	}
	var r destRow
	err := o.db.View(ctx, func(tx *kv.Snapshot) (err error) {
		k := destKey(id)
		_, r, err = decodeDestRow(k, tx.Bucket(bucketDests).Get(k))
		return err
	})
	if err != nil {
		return outbox.Learned{}, fmt.Errorf("read what was learned of %s: %w", dest, err)
	}
	return r.Learned, nil
}

// Learn implements outbox.Memory. What a server can do is kept over a restart: without it the first request after one
// would have to be the least that any server understands.
func (o *Outbox) Learn(ctx context.Context, dest string, l outbox.Learned) error {
	return o.db.Transact(ctx, 0, func(t *Tx) error {
		id, err := t.Destination(dest)
		if err != nil {
			return err
		}
		_, row, err := decodeDestRow(destKey(id), t.dests.Get(destKey(id)))
		if err != nil {
			return err
		}
		row.Learned = l
		return t.putDest("put learned", id, row)
	})
}
