package state

import (
	"encoding/binary"
	"encoding/json"
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
	b := kv.NewSealed(deadRowVersion, 512+len(l.Batch.Frame))
	b = kv.AppendInt(b, int64(r.dest))
	b = kv.AppendFixed(b, r.stream.ID)
	b = appendStream(b, r.stream)
	b = kv.AppendInt(b, l.Line)
	b = kv.AppendInt(b, int64(l.Status))
	b = kv.AppendString(b, l.Reason)
	b = kv.AppendString(b, l.Answer)
	b = kv.AppendInt(b, l.At)
	key := DeadKey{Seq: l.Batch.Seq, Line: l.Line}.bytes()
	b = kv.AppendBytes(b, encodeBatchRow(nil, &l.Batch, l.At))
	return kv.Seal(key, kv.AppendString(b, r.stream.Epoch))
}

// decodeDeadRow reads a row. The batch points into v.
func decodeDeadRow(k, v []byte) (deadRow, error) {
	v, err := kv.Unseal(k, v, deadRowVersion)
	if err != nil {
		return deadRow{}, fmt.Errorf("read dead letter: %w", err)
	}
	d := kv.NewDecoder(v, nil)
	r := deadRow{dest: uint32(d.Int())}
	id := d.Fixed()
	r.stream = streamFrom(d)
	r.stream.ID = id
	r.letter = outbox.DeadLetter{Line: d.Int(), Status: int(d.Int()), Reason: d.String(), Answer: d.String(), At: d.Int()}
	row := d.Bytes()
	r.stream.Epoch = d.String()
	if err := d.End(); err != nil {
		return deadRow{}, fmt.Errorf("read dead letter: %w", err)
	}
	if r.letter.Batch, _, _, err = decodeBatchRow(nil, row); err != nil {
		return deadRow{}, fmt.Errorf("read dead letter: %w", err)
	}
	key, err := splitDeadKey(k)
	r.letter.Batch.Seq = key.Seq
	return r, err
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
	j, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode destination: %w", err)
	}
	return kv.Seal(destKey(id), append(kv.NewSealed(destRowVersion, len(j)), j...)), nil
}

func decodeDestRow(k, v []byte) (id uint32, r destRow, err error) {
	if len(k) != 4 {
		return 0, r, fmt.Errorf("%w: destination key of %d bytes", ErrCorrupt, len(k))
	}
	j, err := kv.Unseal(k, v, destRowVersion)
	if err != nil {
		return 0, r, fmt.Errorf("read destination: %w", err)
	}
	if err := json.Unmarshal(j, &r); err != nil {
		return 0, r, fmt.Errorf("%w: destination: %w", ErrCorrupt, err)
	}
	return binary.BigEndian.Uint32(k), r, nil
}
