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

// Codec writes the content of a value, or reads what it wrote: one layout serves both directions. The first error of
// reading sticks, and all later reads give zero, so that a layout need not look for errors.
type Codec struct {
	b        []byte
	reading  bool
	err      error
	interned map[string]string // see Intern
}

// Write appends what layout writes.
func Write(b []byte, layout func(*Codec)) []byte {
	c := Codec{b: b}
	layout(&c)
	return c.b
}

// Read has layout read all of what it wrote.
func Read(b []byte, layout func(*Codec)) error {
	c := Codec{b: b, reading: true}
	layout(&c)
	if c.err == nil && len(c.b) > 0 {
		c.err = fmt.Errorf("%w: %d bytes left over in a value", ErrCorrupt, len(c.b))
	}
	return c.err
}

// SealRow returns a sealed value of about so many bytes with what layout writes.
func SealRow(version byte, key []byte, capacity int, layout func(*Codec)) []byte {
	return Seal(key, Write(NewSealed(version, capacity), layout))
}

// ReadRow has layout read what SealRow wrote. The error begins with what the row is.
func ReadRow(what string, version byte, key, value []byte, layout func(*Codec)) error {
	text, err := Unseal(key, value, version)
	if err == nil {
		err = Read(text, layout)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	return nil
}

// Intern sets where Shared finds and puts the strings that it has met; without, it copies each.
func (c *Codec) Intern(strings map[string]string) { c.interned = strings }

// Fail marks the value as unreadable, unless it is already. For a layout that finds that the content makes no sense.
func (c *Codec) Fail() {
	if c.err == nil {
		c.err = fmt.Errorf("%w: value is cut short", ErrCorrupt)
	}
	c.b = nil
}

// Number takes numbers of as few bytes as each needs.
func Number[T ~int | ~int64 | ~uint32](c *Codec, numbers ...*T) {
	for _, v := range numbers {
		if !c.reading {
			c.b = binary.AppendVarint(c.b, int64(*v))
			continue
		}
		n, size := binary.Varint(c.b)
		if size <= 0 {
			c.Fail()
			n, size = 0, 0
		}
		*v, c.b = T(n), c.b[size:]
	}
}

// Fixed takes numbers of eight bytes: hashes and device numbers fill them anyway.
func (c *Codec) Fixed(numbers ...*uint64) {
	for _, v := range numbers {
		if !c.reading {
			c.b = binary.BigEndian.AppendUint64(c.b, *v)
		} else if *v = 0; c.has(8) {
			*v, c.b = binary.BigEndian.Uint64(c.b), c.b[8:]
		}
	}
}

// Checksum takes a number of four bytes.
func (c *Codec) Checksum(v *uint32) {
	if !c.reading {
		c.b = binary.BigEndian.AppendUint32(c.b, *v)
	} else if *v = 0; c.has(4) {
		*v, c.b = binary.BigEndian.Uint32(c.b), c.b[4:]
	}
}

// Byte takes one byte.
func (c *Codec) Byte(v *byte) {
	if !c.reading {
		c.b = append(c.b, *v)
	} else if *v = 0; c.has(1) {
		*v, c.b = c.b[0], c.b[1:]
	}
}

// Flags takes at most eight flags as the bits of one byte, the first one lowest.
func (c *Codec) Flags(flags ...*bool) {
	var f byte
	for i, on := range flags {
		if *on {
			f |= 1 << i
		}
	}
	c.Byte(&f)
	for i, on := range flags {
		if c.reading {
			*on = f&(1<<i) != 0
		}
	}
}

// has reports whether so many bytes are left to read.
func (c *Codec) has(n int) bool {
	if n > len(c.b) {
		c.Fail()
		return false
	}
	return true
}

// Bytes takes bytes with their number. What it reads is a part of the value itself.
func (c *Codec) Bytes(parts ...*[]byte) {
	for _, v := range parts {
		if !c.reading {
			c.b = append(binary.AppendUvarint(c.b, uint64(len(*v))), *v...)
			continue
		}
		n, size := binary.Uvarint(c.b)
		if *v = nil; size <= 0 || n > uint64(len(c.b)-size) {
			c.Fail()
			continue
		}
		end := size + int(n)
		*v, c.b = c.b[size:end:end], c.b[end:]
	}
}

// String is Bytes for strings, which are copied.
func (c *Codec) String(texts ...*string) { c.texts(nil, texts) }

// Shared is String for copies that equal strings share: ten thousand files name few roots and projects.
func (c *Codec) Shared(texts ...*string) { c.texts(c.interned, texts) }

func (c *Codec) texts(interned map[string]string, texts []*string) {
	for _, v := range texts {
		if !c.reading {
			c.b = append(binary.AppendUvarint(c.b, uint64(len(*v))), *v...)
			continue
		}
		var b []byte
		c.Bytes(&b)
		if s, ok := interned[string(b)]; ok {
			*v = s
			continue
		}
		if *v = string(b); interned != nil {
			interned[*v] = *v
		}
	}
}

// List takes a list: its length and its elements.
func List[T any](c *Codec, list *[]T, each func(*T)) {
	n := len(*list)
	if Number(c, &n); c.reading {
		*list = nil
	}
	for i := 0; i < n && c.err == nil; i++ {
		if c.reading {
			*list = append(*list, *new(T))
		}
		each(&(*list)[i])
	}
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
		return fmt.Errorf("%w: decode row: %w", ErrCorrupt, err)
	}
	return nil
}
