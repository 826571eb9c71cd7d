package state

import (
	"encoding/binary"
	"fmt"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

const fileRowVersion = 6

// fileRow is a row of the bucket files.
type fileRow struct {
	tracked tail.Tracked
	routing Routing
	dest    uint32 // of routing.Dest; 0 for ""
}

func (r *fileRow) encode() []byte {
	return kv.SealRow(fileRowVersion, fileKey(r.tracked.File.ID), 512, r.layout)
}

// decodeFileRow reads a row. interned may be nil. The caller sets routing.Dest, which the row holds as a number.
func decodeFileRow(id tail.FileID, v []byte, interned map[string]string) (fileRow, error) {
	var r fileRow
	r.tracked.File.ID, r.routing.Stream.ID = id, uint64(id)
	err := kv.ReadRow("file row", fileRowVersion, fileKey(id), v, func(c *kv.Codec) {
		c.Intern(interned)
		r.layout(c)
	})
	if err != nil {
		return fileRow{}, err
	}
	return r, nil
}

func (r *fileRow) layout(c *kv.Codec) {
	t, f := &r.tracked, &r.routing
	c.Byte((*byte)(&t.File.Kind))
	c.String(&t.File.Path)
	c.Shared(&t.File.Root)
	c.String(&t.File.Name)
	kv.Number(c, &t.File.Copy)
	layoutStat(c, &t.File.Stat)
	layoutCursor(c, &t.Cursor)
	kv.Number(c, &t.Provisional.Length)
	c.Fixed(&t.Provisional.Hash)
	layoutStat(c, &t.Verified)
	kv.Number(c, &t.Gone)
	kv.Number(c, &t.Missed)
	layoutStream(c, &f.Stream)
	kv.Number(c, &r.dest)
	kv.Number(c, &f.RewoundTo, &f.Withheld, &f.Excluded, &f.SentBefore)
	c.Flags(&f.Decided, &f.Plain, &f.Watched, &f.Compacted)
	kv.Number(c, &f.WatchedFrom)
	c.Shared(&f.Stream.Epoch)
	c.String((*string)(&f.Odd))
	c.Shared(&f.ParentCwd)
}

func layoutStat(c *kv.Codec, s *tail.Stat) {
	c.Fixed(&s.Device, &s.Inode)
	kv.Number(c, &s.Size, &s.ModTime, &s.ChangeTime)
}

func layoutCursor(c *kv.Codec, at *tail.Cursor) {
	kv.Number(c, &at.Offset, &at.Line)
	kv.Number(c, &at.Generation)
	c.Fixed(&at.Anchor)
	kv.Number(c, &at.Mark)
	c.Fixed(&at.Segment)
}

func layoutStream(c *kv.Codec, s *outbox.Stream) {
	c.String(&s.SessionID)
	c.Shared(&s.ProjectHash)
	c.String(&s.Path)
	c.Shared(&s.Cwd, &s.Project, &s.Parent, &s.Repository)
	kv.Number(c, &s.MaxEntries)
	c.Flags(&s.Extended)
}

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

const (
	deadRowVersion = 3
	destRowVersion = 1
)

// deadRow is a row of the bucket dead_letters. It holds its stream's names, because its file may be forgotten before a
// person looks at it.
type deadRow struct {
	dest   uint32
	stream outbox.Stream
	letter outbox.DeadLetter
}

func (r *deadRow) encode() []byte {
	l := &r.letter
	batch := encodeBatchRow(nil, &l.Batch, l.At)
	return kv.SealRow(deadRowVersion, DeadKey{Seq: l.Batch.Seq, Line: l.Line}.bytes(), 512+len(batch),
		func(c *kv.Codec) { r.layout(c, &batch) })
}

// decodeDeadRow reads a row. The batch points into v.
func decodeDeadRow(k, v []byte) (r deadRow, err error) {
	var batch []byte
	err = kv.ReadRow("dead letter", deadRowVersion, k, v, func(c *kv.Codec) { r.layout(c, &batch) })
	if err != nil {
		return deadRow{}, err
	}
	if r.letter.Batch, _, _, err = decodeBatchRow(nil, batch); err != nil {
		return deadRow{}, fmt.Errorf("read dead letter: %w", err)
	}
	key, err := splitDeadKey(k)
	r.letter.Batch.Seq = key.Seq
	return r, err
}

func (r *deadRow) layout(c *kv.Codec, batch *[]byte) {
	l := &r.letter
	kv.Number(c, &r.dest)
	c.Fixed(&r.stream.ID)
	layoutStream(c, &r.stream)
	kv.Number(c, &l.Line)
	kv.Number(c, &l.Status)
	c.String(&l.Reason, &l.Answer)
	kv.Number(c, &l.At)
	c.Bytes(batch)
	c.String(&r.stream.Epoch)
}

// destRow is a row of the bucket destinations.
type destRow struct {
	URL     string         `json:"url"`
	Learned outbox.Learned `json:"learned"`
	Judge   string         `json:"judge,omitempty"` // who answered last, see newServerVersion
	// Judges are those whom every dead letter was queued for again, with the time in Unix seconds.
	Judges map[string]int64 `json:"judges,omitempty"`
}

func (r *destRow) encode(id uint32) ([]byte, error) {
	return kv.SealJSON(destRowVersion, destKey(id), r)
}

func decodeDestRow(k, v []byte) (id uint32, r destRow, err error) {
	if len(k) != 4 {
		return 0, r, fmt.Errorf("%w: destination key of %d bytes", ErrCorrupt, len(k))
	}
	if err := kv.UnsealJSON(destRowVersion, k, v, &r); err != nil {
		return 0, r, fmt.Errorf("read destination: %w", err)
	}
	return binary.BigEndian.Uint32(k), r, nil
}
