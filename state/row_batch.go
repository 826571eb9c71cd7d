package state

import (
	"encoding/binary"
	"fmt"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state/kv"
)

// A row of the outbox: version byte, u32 length of the header, u32 CRC-32C of key and header, the header, the frame.
// The header has a checksum of its own, and holds that of the frame: Open trusts the counts in the headers without
// reading gigabytes of frames, and a frame that rotted on the disk is found before it is sent.
const (
	batchRowVersion = 1
	batchRowPrefix  = 1 + 4 + 4
)

// rowMeta is what the index counts of a row in the outbox.
type rowMeta struct {
	dest        uint32
	stream, seq uint64
	at          int64 // Unix seconds when it was queued
	entries     int64
	raw         int64
	stored      int64 // bytes of key and value
}

// encodeBatchRow makes a row. It copies the frame. That is the only copy that a commit makes: bbolt writes the value
// from there.
func encodeBatchRow(key []byte, b *outbox.Batch, at int64) []byte {
	size := batchRowPrefix + 128 + len(b.Frame)
	for _, e := range b.Edges {
		size += 24 + len(e.Before) + len(e.After)
	}
	sum := kv.Checksum(nil, b.Frame)
	v := make([]byte, batchRowPrefix, size)
	v[0] = batchRowVersion
	v = kv.Write(v, func(c *kv.Codec) { layoutBatch(c, b, &at, &sum, len(b.Frame)) })
	binary.BigEndian.PutUint32(v[1:], uint32(len(v)-batchRowPrefix))
	binary.BigEndian.PutUint32(v[5:], kv.Checksum(key, v[batchRowPrefix:]))
	return append(v, b.Frame...)
}

// layoutBatch is the header of a row. sum is the checksum of the frame, which has size bytes.
func layoutBatch(c *kv.Codec, b *outbox.Batch, at *int64, sum *uint32, size int) {
	frame := size
	kv.Number(c, at)
	c.Byte((*byte)(&b.Kind))
	kv.Number(c, &b.Generation)
	kv.Number(c, &b.RewoundTo, &b.From.Offset, &b.From.Line, &b.To.Offset, &b.To.Line)
	kv.Number(c, &b.Entries)
	kv.Number(c, &b.Raw)
	derived := b.Items != 0 || b.Blob != outbox.BlobRef{}
	c.Flags(&b.NoNewline, &derived)
	c.Checksum(sum)
	if kv.Number(c, &frame); frame != size {
		c.Fail()
	}
	kv.List(c, &b.Edges, func(e *protocol.Edge) {
		kv.Number(c, &e.Line)
		c.Bytes(&e.Before, &e.After)
	})
	if derived { // absent in rows of lines
		kv.Number(c, &b.Items)
		r := &b.Blob
		c.String(&r.SHA256, &r.Name, &r.Media, &r.Root, &r.Path)
		kv.Number(c, &r.Size)
	}
}

// splitBatchRow returns a row's checked header and its unchecked frame. Both point into v.
func splitBatchRow(key, v []byte) (header, frame []byte, err error) {
	if len(v) < batchRowPrefix || v[0] != batchRowVersion {
		return nil, nil, fmt.Errorf("%w: outbox row without a header", ErrCorrupt)
	}
	n := binary.BigEndian.Uint32(v[1:])
	if uint64(n) > uint64(len(v)-batchRowPrefix) {
		return nil, nil, fmt.Errorf("%w: outbox row is cut short", ErrCorrupt)
	}
	header, frame = v[batchRowPrefix:batchRowPrefix+int(n)], v[batchRowPrefix+int(n):]
	if kv.Checksum(key, header) != binary.BigEndian.Uint32(v[5:]) {
		return nil, nil, fmt.Errorf("%w: checksum of an outbox row's header differs", ErrCorrupt)
	}
	return header, frame, nil
}

// decodeBatchRow reads a row. Edges and Frame point into v, and the frame is not checked yet: see detach.
func decodeBatchRow(key, v []byte) (b outbox.Batch, at int64, sum uint32, err error) {
	header, frame, err := splitBatchRow(key, v)
	if err != nil {
		return outbox.Batch{}, 0, 0, err
	}
	err = kv.Read(header, func(c *kv.Codec) { layoutBatch(c, &b, &at, &sum, len(frame)) })
	if err != nil {
		return outbox.Batch{}, 0, 0, fmt.Errorf("read outbox row: %w", err)
	}
	b.Frame = frame
	return b, at, sum, nil
}

// detach copies what a decoded batch points to, so that it outlives the transaction, and checks the frame on the way.
func detach(b *outbox.Batch, sum uint32) error {
	b.Frame = clone(b.Frame)
	if kv.Checksum(nil, b.Frame) != sum {
		return fmt.Errorf("%w: checksum of outbox row %d differs", ErrCorrupt, b.Seq)
	}
	for i := range b.Edges {
		b.Edges[i].Before, b.Edges[i].After = clone(b.Edges[i].Before), clone(b.Edges[i].After)
	}
	return nil
}

// clone copies. The copy of nothing is nil, as it was when the batch was queued.
func clone(b []byte) []byte { return append([]byte(nil), b...) }

// rawOf returns how many uncompressed bytes a row stands for. Those of a large blob are in its file, not in the row.
func rawOf(b *outbox.Batch) int64 {
	if b.Kind == outbox.Blob {
		return b.Blob.Size
	}
	return b.Raw
}

// readRowMeta reads what the index counts of a row.
func readRowMeta(k, v []byte) (rowMeta, error) {
	dest, stream, seq, err := splitRowKey(k)
	if err != nil {
		return rowMeta{}, err
	}
	b, at, _, err := decodeBatchRow(k, v)
	if err != nil {
		return rowMeta{}, err
	}
	return rowMeta{
		dest: dest, stream: stream, seq: seq, at: at,
		entries: int64(b.Entries), raw: rawOf(&b), stored: int64(len(k) + len(v)),
	}, nil
}
