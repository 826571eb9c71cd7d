package state

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/tail"
)

// The schema, version 2. Integers in keys are big endian, so that byte order is number order. "sealed" values begin
// with a version byte and the CRC-32C of the key and what follows; u is unsigned.
//
//	meta      "schema" → u32                                    version of this drawing
//	          "epoch"  → sealed 32 hex digits                   random name of the file
//	          "kept/…" → sealed bytes                           what the owner keeps: Remember
//	          "past/" u64 file | u32 generation → sealed Past   generations that a rewind ended, with the marks it cut
//	dests     u32 destination → sealed JSON {url, learned}      ids from the bucket's sequence, never reused
//	files     u64 file → sealed {Tracked, Facts}                fileRow
//	prefixes  u64 file | u64 offset → u64 line, u64 hash        tail.Mark; never beyond the file's cursor
//	outbox    u32 destination | u64 stream | u64 seq → row      batchRow; seq from the bucket's sequence, never reused;
//	                                                            of a blob, with the destination's highest bit set
//	dead      u64 seq | u64 line → sealed {dest, stream, row}   deadRow
//	sessions  u64 file → sealed {at, place, cleared}            understoodRow; since version 2, as are all below
//	messages  u64 file → sealed {fold, log, marks}              blobs: transcript's encodings, deflate
//
// The buckets checkpoints, notices, documents and blobs are drawn where they are read and written.
const (
	bucketMeta     = "meta"
	bucketDests    = "dests"
	bucketFiles    = "files"
	bucketPrefixes = "prefixes"
	bucketOutbox   = "outbox"
	bucketDead     = "dead"

	bucketSessions    = "sessions"
	bucketMessages    = "messages"
	bucketCheckpoints = "checkpoints"
	bucketNotices     = "notices"
	bucketDocuments   = "documents"
	bucketBlobs       = "blobs"

	keySchema = "schema"
	keyEpoch  = "epoch"
)

func bucketNames() []string {
	return []string{
		bucketMeta, bucketDests, bucketFiles, bucketPrefixes, bucketOutbox, bucketDead,
		bucketSessions, bucketMessages, bucketCheckpoints, bucketNotices, bucketDocuments, bucketBlobs,
	}
}

// migration rewrites a file of one schema version as the next. It runs in the transaction that stores the new
// version, and must not look at rows with today's code, which changes.
type migration func(*bbolt.Tx) error

// migrations are the steps from version 1 on: the first makes a version 2 of a version 1.
func migrations() []migration { return []migration{addBuckets} }

// migrate brings the schema up to date, or answers ErrNewer.
func migrate(tx *bbolt.Tx, steps []migration) (changed bool, err error) {
	meta := tx.Bucket([]byte(bucketMeta))
	if meta == nil {
		return false, fmt.Errorf("%w: bucket %s is missing", ErrCorrupt, bucketMeta)
	}
	v := meta.Get([]byte(keySchema))
	if len(v) != 4 {
		return false, fmt.Errorf("%w: no schema version", ErrCorrupt)
	}
	have, want := binary.BigEndian.Uint32(v), uint32(len(steps)+1)
	if have > want {
		return false, fmt.Errorf("%w: it has schema %d, this ccship knows up to %d; run the newer ccship, or use another state directory", ErrNewer, have, want)
	}
	if have == 0 {
		return false, fmt.Errorf("%w: schema version 0", ErrCorrupt)
	}
	for ; have < want; have++ {
		if err := steps[have-1](tx); err != nil {
			return false, fmt.Errorf("migrate state from schema %d: %w", have, err)
		}
		if err := meta.Put([]byte(keySchema), binary.BigEndian.AppendUint32(nil, have+1)); err != nil {
			return false, fmt.Errorf("store schema version: %w", err)
		}
		changed = true
	}
	return changed, nil
}

func destKey(dest uint32) []byte { return binary.BigEndian.AppendUint32(nil, dest) }

func fileKey(id tail.FileID) []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)) }

func markKey(id tail.FileID, offset int64) []byte {
	return binary.BigEndian.AppendUint64(fileKey(id), uint64(offset))
}

// streamPrefix is what the keys of all rows of a stream begin with.
func streamPrefix(dest uint32, stream uint64) []byte {
	return binary.BigEndian.AppendUint64(destKey(dest), stream)
}

// blobQueue is set in the destination of the keys of rows that are blobs: they are a queue of their own.
const blobQueue = 1 << 31

// queueOf is the destination in the keys of rows.
func queueOf(dest uint32, blobs bool) uint32 {
	if blobs {
		return dest | blobQueue
	}
	return dest
}

func rowKey(dest uint32, stream, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(streamPrefix(dest, stream), seq)
}

const rowKeySize = 4 + 8 + 8

// splitRowKey takes a key of the outbox apart.
func splitRowKey(k []byte) (dest uint32, stream, seq uint64, err error) {
	if len(k) != rowKeySize {
		return 0, 0, 0, fmt.Errorf("%w: outbox key of %d bytes", ErrCorrupt, len(k))
	}
	return binary.BigEndian.Uint32(k), binary.BigEndian.Uint64(k[4:]), binary.BigEndian.Uint64(k[12:]), nil
}

func (k DeadKey) bytes() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, k.Seq), uint64(k.Line))
}

const deadKeySize = 16
