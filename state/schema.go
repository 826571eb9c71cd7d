package state

import (
	"encoding/binary"
	"fmt"

	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// schemaVersion is that of the layout. A change of the layout counts it up: a file of another version is refused.
const schemaVersion = 7

// The layout. Integers in keys are big endian, so that byte order is number order. "sealed" values begin
// with a version byte and the CRC-32C of the key and what follows: the key is part of the sum, so that a row that ends
// up under another key is found. u is unsigned.
//
//	meta          as kv.BucketMeta describes
//	destinations  u32 destination → sealed JSON {url, learned}      ids from the bucket's sequence, never reused
//	files         u64 file → sealed {Tracked, Routing}              fileRow
//	marks         u64 file | u64 offset → u64 line, u64 hash        tail.Mark; never beyond the file's cursor
//	generations   u64 file | u32 generation → sealed                PastGeneration, with the marks that a rewind cut
//	outbox        u32 destination | u64 stream | u64 seq → row      batchRow; seq from the bucket's sequence, never
//	                                                                reused. For blobs the highest bit of the
//	                                                                destination is set
//	dead_letters  u64 seq | u64 line → sealed {dest, stream, row}   deadRow
//
// The buckets of state/projection are described there. Their names are here because the file has one schema.
const (
	bucketDests       = "destinations"
	bucketFiles       = "files"
	bucketMarks       = "marks"
	bucketGenerations = "generations"
	bucketOutbox      = "outbox"
	bucketDead        = "dead_letters"

	BucketProjections = "projections"
	BucketFolds       = "folds"
	BucketCheckpoints = "checkpoints"
	BucketNotices     = "notices"
	BucketDocuments   = "documents"
	BucketAttachments = "attachments"
)

func bucketNames() []string {
	return []string{
		kv.BucketMeta, bucketDests, bucketFiles, bucketMarks, bucketGenerations, bucketOutbox, bucketDead,
		BucketProjections, BucketFolds, BucketCheckpoints, BucketNotices, BucketDocuments, BucketAttachments,
	}
}

func destKey(dest uint32) []byte { return binary.BigEndian.AppendUint32(nil, dest) }

func fileKey(id tail.FileID) []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)) }

func markKey(id tail.FileID, offset int64) []byte {
	return binary.BigEndian.AppendUint64(fileKey(id), uint64(offset))
}

// streamPrefix begins the keys of all rows of a stream.
func streamPrefix(dest uint32, stream uint64) []byte {
	return binary.BigEndian.AppendUint64(destKey(dest), stream)
}

// blobQueue is set in the destination of the keys of blobs. They are a queue of their own: a blob of a gigabyte must
// not delay the lines behind it.
const blobQueue = 1 << 31

// queueOf returns the destination as the keys of rows hold it.
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

// splitRowKey returns the inverse of rowKey.
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
