package kv

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"

	"go.etcd.io/bbolt"
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

// A sealed row proves that it is right, but not that it is there. One bit in the element count of a page hides rows.
// One bit in a page number leads to a page of an earlier transaction, whose rows are older and whole. One bit in the
// sequence of a bucket gives numbers out again. So the file holds a sum over all rows and sequences in its bucket meta,
// and each transaction brings it up to date. checkFile compares.
//
// The sum is that of independent hashes, so that a write costs as much as the rows that it changes. It covers keys, the
// length of values and their first sumHead bytes: there a sealed value has its own checksum.

const (
	keySum  = "rows" // sorts before keySchema: a page that lost its last rows has no schema either
	sumHead = 32     // bytes; values without a checksum are no longer
)

// hash64 hashes parts: FNV-1a, then a finaliser, because the hashes are added.
func hash64(kind byte, parts ...[]byte) uint64 {
	const prime = 1099511628211
	h := (14695981039346656037 ^ uint64(kind)) * prime
	for _, p := range parts {
		for _, c := range p {
			h = (h ^ uint64(c)) * prime
		}
		h = (h ^ uint64(len(p))) * prime
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// rowSum returns what a row adds to the sum. size is the length of the value, head its beginning.
func rowSum(key, head []byte, size int) uint64 {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(size))
	return hash64('r', key, length[:], head[:min(len(head), sumHead)])
}

// sequenceSum returns what the sequence of a bucket adds to the sum.
func sequenceSum(name []byte, sequence uint64) uint64 {
	if sequence == 0 {
		return 0
	}
	return hash64('s', name, binary.BigEndian.AppendUint64(nil, sequence))
}

// isSum reports whether a row is the sum itself, which is not part of it.
func isSum(bucket, key []byte) bool { return string(bucket) == BucketMeta && string(key) == keySum }

// sumOf computes the sum of a file.
func sumOf(tx *bbolt.Tx) (sum uint64, err error) {
	err = tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
		sum += sequenceSum(name, b.Sequence())
		return b.ForEach(func(k, v []byte) error {
			if v != nil && !isSum(name, k) {
				sum += rowSum(k, v, len(v))
			}
			return nil
		})
	})
	return sum, err
}

// putSum stores the sum.
func putSum(tx *bbolt.Tx, sum uint64) error {
	key := []byte(keySum)
	err := tx.Bucket([]byte(BucketMeta)).Put(key, SealRow(1, key, 8, func(c *Codec) { c.Fixed(&sum) }))
	if err != nil {
		return fmt.Errorf("store sum of rows: %w", err)
	}
	return nil
}

// SumRows stores the sum of the rows as they are. It ends a transaction that is no Tx and that changed any.
func SumRows(tx *bbolt.Tx) error {
	sum, err := sumOf(tx)
	if err != nil {
		return err
	}
	return putSum(tx, sum)
}

// readSum reads a stored sum.
func readSum(value []byte) (sum uint64, err error) {
	err = ReadRow("sum of rows", 1, []byte(keySum), value, func(c *Codec) { c.Fixed(&sum) })
	return sum, err
}

// PutMeta durably stores a few bytes for the owner under a name; nil removes them. It writes nothing if the value is
// the same. Use it for values that are read once at the start and seldom change; use a bucket for many entries.
func (db *DB) PutMeta(ctx context.Context, name string, value []byte) error {
	key := []byte(prefixMeta + name)
	err := db.Update(ctx, int64(len(value)), func(t *Tx) error {
		meta := t.Bucket(BucketMeta)
		var want []byte
		if value != nil {
			want = Seal(key, append(NewSealed(1, len(value)), value...))
		}
		old := meta.Get(key)
		switch {
		case bytes.Equal(old, want) && (old == nil) == (want == nil):
			return nil
		case want == nil:
			return t.Delete("put meta", meta, key)
		}
		return t.Put("put meta", meta, key, want)
	})
	if err != nil {
		return fmt.Errorf("store %s: %w", name, err)
	}
	return nil
}

// Meta returns what PutMeta stored under a name; nil: nothing.
func (db *DB) Meta(ctx context.Context, name string) (value []byte, err error) {
	key := []byte(prefixMeta + name)
	err = db.View(ctx, func(tx *Snapshot) error {
		v := tx.Bucket(BucketMeta).Get(key)
		if v == nil {
			return nil
		}
		v, err := Unseal(key, v, 1)
		value = append([]byte{}, v...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return value, nil
}
