package state

import (
	"encoding/binary"
	"fmt"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/kv"
)

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
