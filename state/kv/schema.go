package kv

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"
)

// Schema is the layout of the file.
type Schema struct {
	Buckets []string // BucketMeta need not be among them
	Version uint32   // above 0. A file of another version is not opened.
}

// BucketMeta is the bucket that every file has:
//
//	"schema"          → u32                   version of the layout; the sum of rows is its checksum
//	"epoch"           → sealed 32 hex digits  random name of the file
//	"persisted/" name → sealed bytes          PutMeta
//	"rows"            → sealed u64            sum of all rows and sequences; a later version must not change its layout
const BucketMeta = "meta"

const (
	keySchema  = "schema"
	keyEpoch   = "epoch"
	prefixMeta = "persisted/"
)

// checkSchema returns ErrNewer or ErrEarlier for a file of another version.
func checkSchema(tx *bbolt.Tx, want uint32) error {
	meta := tx.Bucket([]byte(BucketMeta))
	if meta == nil {
		return fmt.Errorf("%w: bucket %s is missing", ErrCorrupt, BucketMeta)
	}
	v := meta.Get([]byte(keySchema))
	if len(v) != 4 {
		return fmt.Errorf("%w: no schema version", ErrCorrupt)
	}
	have := binary.BigEndian.Uint32(v)
	switch {
	case have > want:
		return fmt.Errorf("%w: it has schema %d, this ccship knows up to %d; "+
			"run the newer ccship, or use another state directory", ErrNewer, have, want)
	case have == 0:
		return fmt.Errorf("%w: schema version 0", ErrCorrupt)
	case have < want:
		return fmt.Errorf("%w: it has schema %d, this ccship has %d; "+
			"move the file away to start with a new state: everything is then sent anew", ErrEarlier, have, want)
	case meta.Get([]byte(keySum)) == nil:
		return fmt.Errorf("%w: the sum of its rows is missing", ErrCorrupt)
	}
	return nil
}
