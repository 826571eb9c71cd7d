package state

import (
	"encoding/binary"
	"fmt"

	"github.com/ccship/ccship/state/kv"

	"github.com/ccship/ccship/tail"
)

// The schema, version 2. Integers in keys are big endian, so that byte order is number order. "sealed" values begin
// with a version byte and the CRC-32C of the key and what follows; u is unsigned.
//
//	meta      as kv.BucketMeta says, and
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
)

func bucketNames() []string {
	return []string{
		kv.BucketMeta, bucketDests, bucketFiles, bucketPrefixes, bucketOutbox, bucketDead,
		bucketSessions, bucketMessages, bucketCheckpoints, bucketNotices, bucketDocuments, bucketBlobs,
	}
}

// migrations are the steps from version 1 on: the first makes a version 2 of a version 1.
func migrations() []kv.Migration { return []kv.Migration{addBuckets} }

// addBuckets is the step from schema 1 to 2: what sessions mean gets its buckets, which are empty.
func addBuckets(tx *kv.RawTx) error {
	for _, name := range []string{"sessions", "messages", "checkpoints", "notices", "documents", "blobs"} {
		if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return fmt.Errorf("make bucket %s: %w", name, err)
		}
	}
	return nil
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
