package lines

import (
	"encoding/binary"
	"hash/crc32"
)

// version is that of the header's format, its first byte.
const version = 1

// entry is what a header says about a line.
type entry struct {
	Index    int64
	Received int64 // Unix microseconds
	Kind     uint8
	Size     int64 // of its bytes
}

// kinds is how many kinds of lines a header can distinguish.
const kinds = 4

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// header writes what ascending lines are: their number, and for each the distance from the line before it, its kind,
// its time of arrival where that differs from the one before, and its size. A checksum ends it.
func header(lines []entry) []byte {
	out := make([]byte, 0, 16+4*len(lines))
	out = append(out, version)
	out = binary.AppendUvarint(out, uint64(len(lines)))
	next, received := lines[0].Index, int64(0)
	for _, l := range lines {
		word := uint64(l.Index-next)<<3 | uint64(l.Kind)<<1
		if l.Received != received {
			word |= 1
		}
		out = binary.AppendUvarint(out, word)
		if l.Received != received {
			out = binary.AppendVarint(out, l.Received-received)
		}
		out = binary.AppendUvarint(out, uint64(l.Size))
		next, received = l.Index+1, l.Received
	}
	return binary.LittleEndian.AppendUint32(out, crc32.Checksum(out, castagnoli()))
}

// Index reads the header: the lines of the block, ascending. An ErrDamaged says that it is not what was written.
func (b *Block) Index() ([]entry, error) {
	body := len(b.Header) - crc32.Size
	if body < 1 || b.Header[0] != version ||
		crc32.Checksum(b.Header[:body], castagnoli()) != binary.LittleEndian.Uint32(b.Header[body:]) {
		return nil, errDamaged
	}
	r := reader{rest: b.Header[1:body]}
	n := r.uvarint()
	if n == 0 || n > uint64(len(r.rest)) || n != uint64(b.Lines) {
		return nil, errDamaged
	}
	out := make([]entry, 0, n)
	next, received, total := b.First, int64(0), int64(0)
	for range n {
		word := r.uvarint()
		if word&1 != 0 {
			received += r.varint()
		}
		e := entry{Index: next + int64(word>>3), Received: received, Kind: uint8(word>>1) % kinds, Size: int64(r.uvarint())}
		if e.Index < next || e.Size < 0 || e.Size > b.RawBytes {
			return nil, errDamaged
		}
		out, next, total = append(out, e), e.Index+1, total+e.Size
	}
	if r.failed || len(r.rest) > 0 || total != b.RawBytes || next != b.Last+1 {
		return nil, errDamaged
	}
	return out, nil
}

// reader reads numbers.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) uvarint() uint64 {
	x, n := binary.Uvarint(r.rest)
	return took(r, x, n)
}

func (r *reader) varint() int64 {
	x, n := binary.Varint(r.rest)
	return took(r, x, n)
}

func took[T int64 | uint64](r *reader, x T, n int) T {
	if n <= 0 {
		r.failed, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return x
}
