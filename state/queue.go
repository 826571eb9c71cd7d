package state

import (
	"bytes"
	"container/heap"
	"context"
	"fmt"

	"github.com/ccship/ccship/state/kv"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

// Pick implements outbox.Queue, from memory alone. skip must not call the state.
func (db *DB) Pick(dest string, oldest bool, skip func(stream, last uint64) bool) (stream uint64, ok bool) {
	if skip == nil {
		skip = func(uint64, uint64) bool { return false }
	}
	x := &db.index
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
func (db *DB) PickBlobs(dest string, skip func(stream, last uint64) bool) (stream uint64, ok bool) {
	x := &db.index
	x.mu.Lock()
	defer x.mu.Unlock()
	id, known := x.names[dest]
	if q := x.queues[queueOf(id, true)]; known && q != nil {
		return q.pickOldest(skip)
	}
	return 0, false
}

// pickOldest walks the heap from its top: the children of a stream that is skipped become candidates.
func (q *destQueue) pickOldest(skip func(stream, last uint64) bool) (stream uint64, ok bool) {
	c := candidates{heap: q.oldest}
	c.offer(0)
	for len(c.places) > 0 {
		place := heap.Pop(&c).(int)
		if w := q.oldest[place]; !skip(w.stream, w.last) {
			return w.stream, true
		}
		c.offer(2*place + 1)
		c.offer(2*place + 2)
	}
	return 0, false
}

// candidates is a heap of places in a headHeap.
type candidates struct {
	heap   headHeap
	places []int
}

func (c *candidates) offer(place int) {
	if place < len(c.heap) {
		heap.Push(c, place)
	}
}

func (c *candidates) Len() int           { return len(c.places) }
func (c *candidates) Less(i, j int) bool { return c.heap.Less(c.places[i], c.places[j]) }
func (c *candidates) Swap(i, j int)      { c.places[i], c.places[j] = c.places[j], c.places[i] }
func (c *candidates) Push(v any)         { c.places = append(c.places, v.(int)) }
func (c *candidates) Pop() any {
	last := c.places[len(c.places)-1]
	c.places = c.places[:len(c.places)-1]
	return last
}

// Peek implements outbox.Queue. A stream's own MaxEntries bounds it like max.Entries; a batch whose last line had no
// newline ends the batches. Limits of 0 do not bound.
func (db *DB) Peek(ctx context.Context, dest string, stream, after uint64, max outbox.Limits) (outbox.StreamBatches, error) {
	id, ok := db.index.destID(dest)
	if !ok {
		return outbox.StreamBatches{}, nil
	}
	var p outbox.StreamBatches
	err := db.view(ctx, func(tx *kv.Snapshot) (err error) {
		p, err = readBatches(tx, rowKey(queueOf(id, max.Blobs), stream, after), max)
		return err
	})
	if err != nil {
		return outbox.StreamBatches{}, fmt.Errorf("read outbox: %w", err)
	}
	return p, nil
}

// readBatches collects the rows behind a key.
func readBatches(tx *kv.Snapshot, key []byte, max outbox.Limits) (outbox.StreamBatches, error) {
	_, stream, after, _ := splitRowKey(key)
	p := outbox.StreamBatches{Stream: outbox.Stream{ID: stream}}
	file := tail.FileID(stream)
	if v := tx.Bucket(bucketFiles).Get(fileKey(file)); v != nil {
		f, err := decodeFileRow(file, v, nil)
		if err != nil {
			return p, err
		}
		p.Stream = f.facts.Stream
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

// fits says whether a batch may follow those of a parcel.
func fits(p *outbox.StreamBatches, b *outbox.Batch, entries int, raw int64, max outbox.Limits) bool {
	if len(p.Batches) == 0 {
		return true
	}
	last := &p.Batches[len(p.Batches)-1]
	return b.Generation == last.Generation && !last.NoNewline &&
		(max.Entries <= 0 || entries+b.Entries <= max.Entries) &&
		(max.Raw <= 0 || raw+b.Raw <= max.Raw)
}
