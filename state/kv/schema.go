package kv

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"
)

// Schema is the layout of the file. Its version is the number of migrations plus one.
type Schema struct {
	Buckets    []string    // of the newest version; BucketMeta need not be among them
	Migrations []Migration // from version 1 on: the first makes a version 2 of a version 1
	// Summed is the first version whose files have a sum of their rows. A file of an earlier version gets it with its
	// migration.
	Summed uint32
}

// Migration rewrites a file of one schema version as the next. It runs in the transaction that stores the new version,
// and must not decode rows with current code, which changes.
type Migration func(*RawTx) error

// RawTx is what a Migration works on.
type RawTx = bbolt.Tx

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

func (s *Schema) version() uint32 { return uint32(len(s.Migrations) + 1) }

// migrate brings the schema up to date, or returns ErrNewer.
func migrate(tx *bbolt.Tx, schema *Schema) (changed bool, err error) {
	meta := tx.Bucket([]byte(BucketMeta))
	if meta == nil {
		return false, fmt.Errorf("%w: bucket %s is missing", ErrCorrupt, BucketMeta)
	}
	v := meta.Get([]byte(keySchema))
	if len(v) != 4 {
		return false, fmt.Errorf("%w: no schema version", ErrCorrupt)
	}
	have, want := binary.BigEndian.Uint32(v), schema.version()
	if have > want {
		return false, fmt.Errorf("%w: it has schema %d, this ccship knows up to %d; "+
			"run the newer ccship, or use another state directory", ErrNewer, have, want)
	}
	if have == 0 {
		return false, fmt.Errorf("%w: schema version 0", ErrCorrupt)
	}
	if have >= schema.Summed && meta.Get([]byte(keySum)) == nil {
		return false, fmt.Errorf("%w: the sum of its rows is missing", ErrCorrupt)
	}
	for ; have < want; have++ {
		if err := schema.Migrations[have-1](tx); err != nil {
			return false, fmt.Errorf("migrate state from schema %d: %w", have, err)
		}
		if err := meta.Put([]byte(keySchema), binary.BigEndian.AppendUint32(nil, have+1)); err != nil {
			return false, fmt.Errorf("store schema version: %w", err)
		}
		changed = true
	}
	if changed {
		err = SumRows(tx)
	}
	return changed, err
}
