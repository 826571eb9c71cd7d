package state

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// sealSize is the length of the version byte and the checksum in front of a sealed value.
const sealSize = 5

// newSealed begins a sealed value of a version; the checksum's place is left open until seal.
func newSealed(version byte, capacity int) []byte {
	b := make([]byte, sealSize, sealSize+capacity)
	b[0] = version
	return b
}

// seal fills in the checksum of a value begun with newSealed. It covers the key, so that a row whose key rotted does
// not pass for another's.
func seal(key, b []byte) []byte {
	binary.BigEndian.PutUint32(b[1:], checksum(key, b[sealSize:]))
	return b
}

// unseal checks a sealed value and answers what was sealed; it points into b.
func unseal(key, b []byte, version byte) ([]byte, error) {
	if len(b) < sealSize {
		return nil, fmt.Errorf("%w: value of %d bytes", ErrCorrupt, len(b))
	}
	if b[0] != version {
		return nil, fmt.Errorf("%w: value of version %d", ErrCorrupt, b[0])
	}
	if binary.BigEndian.Uint32(b[1:]) != checksum(key, b[sealSize:]) {
		return nil, fmt.Errorf("%w: checksum of a value differs", ErrCorrupt)
	}
	return b[sealSize:], nil
}

// checksum is the CRC-32C of a key and a value.
func checksum(key, b []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli) // a shared one
	return crc32.Update(crc32.Checksum(key, table), table, b)
}

func appendInt(b []byte, v int64) []byte { return binary.AppendVarint(b, v) }

func appendFixed(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }

func appendBytes(b, v []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

func appendString(b []byte, v string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

func appendFlags(b []byte, flags ...bool) []byte {
	var f byte
	for i, on := range flags {
		if on {
			f |= 1 << i
		}
	}
	return append(b, f)
}

// decoder reads what the append functions wrote. The first thing that does not fit sticks in err, and all later
// reads answer zero.
type decoder struct {
	b        []byte
	err      error
	interned map[string]string // for shared; may be nil
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = fmt.Errorf("%w: value is cut short", ErrCorrupt)
	}
	d.b = nil
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) fixed() uint64 {
	b := d.take(8)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

func (d *decoder) byte() byte {
	b := d.take(1)
	if b == nil {
		return 0
	}
	return b[0]
}

func (d *decoder) take(n int) []byte {
	if n > len(d.b) {
		d.fail()
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}

// bytes answers a part of the value itself.
func (d *decoder) bytes() []byte {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || v > uint64(len(d.b)-n) {
		d.fail()
		return nil
	}
	d.b = d.b[n:]
	return d.take(int(v))
}

// string answers a copy.
func (d *decoder) string() string { return string(d.bytes()) }

// shared answers a copy that equal strings share: ten thousand files name few roots and projects.
func (d *decoder) shared() string {
	b := d.bytes()
	if s, ok := d.interned[string(b)]; ok {
		return s
	}
	s := string(b)
	if d.interned != nil {
		d.interned[s] = s
	}
	return s
}

// end answers the first error, one for bytes left over among them.
func (d *decoder) end() error {
	if d.err == nil && len(d.b) > 0 {
		d.err = fmt.Errorf("%w: %d bytes left over in a value", ErrCorrupt, len(d.b))
	}
	return d.err
}
