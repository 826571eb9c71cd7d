package kv

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"
)

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
