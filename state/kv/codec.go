package kv

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
)

// A sealed value begins with a version byte and the CRC-32C of its key and of what follows:
//
//	u8 version | u32 CRC-32C | value
//
// Of bbolt's pages only the roots have checksums: without ours, bit rot would reach a server as part of a conversation.
// This layout is part of the schema.

// sealSize is the length of the version byte and the checksum in front of a sealed value.
const sealSize = 5

// NewSealed begins a sealed value of a version; the checksum's place is left open until Seal.
func NewSealed(version byte, capacity int) []byte {
	b := make([]byte, sealSize, sealSize+capacity)
	b[0] = version
	return b
}

// Seal fills in the checksum of a value begun with NewSealed. It covers the key, so that a row with a damaged key is
// not taken for another row.
func Seal(key, b []byte) []byte {
	binary.BigEndian.PutUint32(b[1:], Checksum(key, b[sealSize:]))
	return b
}

// Unseal checks a sealed value and returns its content, which points into b. ErrCorrupt: key or value changed since it
// was sealed, or the version differs. For a row that exists in two versions, look at b[0] first.
func Unseal(key, b []byte, version byte) ([]byte, error) {
	if len(b) < sealSize {
		return nil, fmt.Errorf("%w: value of %d bytes", ErrCorrupt, len(b))
	}
	if b[0] != version {
		return nil, fmt.Errorf("%w: value of version %d", ErrCorrupt, b[0])
	}
	if binary.BigEndian.Uint32(b[1:]) != Checksum(key, b[sealSize:]) {
		return nil, fmt.Errorf("%w: checksum of a value differs", ErrCorrupt)
	}
	return b[sealSize:], nil
}

// Checksum returns the CRC-32C of a key and a value.
func Checksum(key, b []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli) // a shared one
	return crc32.Update(crc32.Checksum(key, table), table, b)
}

// AppendInt appends a number in as few bytes as it needs.
func AppendInt(b []byte, v int64) []byte { return binary.AppendVarint(b, v) }

// AppendFixed appends a number in eight bytes: hashes and device numbers fill them anyway.
func AppendFixed(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }

// AppendBytes appends bytes with their number.
func AppendBytes(b, v []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

// AppendString is AppendBytes for a string.
func AppendString(b []byte, v string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

// AppendFlags appends at most eight flags as the bits of one byte, the first one lowest.
func AppendFlags(b []byte, flags ...bool) []byte {
	var f byte
	for i, on := range flags {
		if on {
			f |= 1 << i
		}
	}
	return append(b, f)
}

// Decoder reads what the append functions wrote. The first error sticks, and all later reads return zero, so that a
// caller reads a row without checking every field, and End returns the error.
type Decoder struct {
	b        []byte
	err      error
	interned map[string]string // for Shared; may be nil
}

// NewDecoder reads b. interned holds the strings that Shared has met; nil: it copies each.
func NewDecoder(b []byte, interned map[string]string) *Decoder {
	return &Decoder{b: b, interned: interned}
}

// Fail marks the value as unreadable, unless it is already. For a caller that finds that the content makes no sense.
func (d *Decoder) Fail() {
	if d.err == nil {
		d.err = fmt.Errorf("%w: value is cut short", ErrCorrupt)
	}
	d.b = nil
}

// OK reports whether all reads so far succeeded.
func (d *Decoder) OK() bool { return d.err == nil }

// Int reads what AppendInt wrote.
func (d *Decoder) Int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.Fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// Fixed reads what AppendFixed wrote.
func (d *Decoder) Fixed() uint64 {
	b := d.Take(8)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// Byte reads one byte, as AppendFlags writes.
func (d *Decoder) Byte() byte {
	b := d.Take(1)
	if b == nil {
		return 0
	}
	return b[0]
}

// Take returns the next n bytes of the value itself; nil: there are fewer.
func (d *Decoder) Take(n int) []byte {
	if n > len(d.b) {
		d.Fail()
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}

// Bytes returns a part of the value itself, which AppendBytes wrote.
func (d *Decoder) Bytes() []byte {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || v > uint64(len(d.b)-n) {
		d.Fail()
		return nil
	}
	d.b = d.b[n:]
	return d.Take(int(v))
}

// String returns a copy of what AppendString wrote.
func (d *Decoder) String() string { return string(d.Bytes()) }

// Shared returns a copy that equal strings share: ten thousand files name few roots and projects.
func (d *Decoder) Shared() string {
	b := d.Bytes()
	if s, ok := d.interned[string(b)]; ok {
		return s
	}
	s := string(b)
	if d.interned != nil {
		d.interned[s] = s
	}
	return s
}

// End returns the first error; bytes left over are one.
func (d *Decoder) End() error {
	if d.err == nil && len(d.b) > 0 {
		d.err = fmt.Errorf("%w: %d bytes left over in a value", ErrCorrupt, len(d.b))
	}
	return d.err
}

// SealJSON returns a sealed row as JSON.
func SealJSON(version byte, key []byte, row any) ([]byte, error) {
	text, err := json.Marshal(row)
	if err != nil {
		return nil, fmt.Errorf("encode row: %w", err)
	}
	return Seal(key, append(NewSealed(version, len(text)), text...)), nil
}

// UnsealJSON reads what SealJSON wrote into row.
func UnsealJSON(version byte, key, value []byte, row any) error {
	text, err := Unseal(key, value, version)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, row); err != nil {
		return fmt.Errorf("decode row: %w", err)
	}
	return nil
}
