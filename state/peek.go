package state

import (
	"bytes"
	"context"
	"fmt"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

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
