package state

import (
	"encoding/binary"
	"fmt"

	"github.com/ccship/ccship/state/kv"

	"github.com/ccship/ccship/tail"
)

// The schema, version 4. Integers in keys are big endian, so that byte order is number order. "sealed" values begin
// with a version byte and the CRC-32C of the key and what follows; u is unsigned.
//
//	meta          as kv.BucketMeta says
//	destinations  u32 destination → sealed JSON {url, learned}      ids from the bucket's sequence, never reused
//	files         u64 file → sealed {Tracked, Facts}                fileRow
//	marks         u64 file | u64 offset → u64 line, u64 hash        tail.Mark; never beyond the file's cursor
//	generations   u64 file | u32 generation → sealed Past           ended by a rewind, with the marks that it cut
//	outbox        u32 destination | u64 stream | u64 seq → row      batchRow; seq from the bucket's sequence, never
//	                                                                reused; of a blob, with the destination's highest
//	                                                                bit set
//	dead_letters  u64 seq | u64 line → sealed {dest, stream, row}   deadRow
//	projections   u64 file → sealed {at, place, cleared}            understoodRow
//	folds         u64 file → sealed {fold, log, marks}              blobs: transcript's encodings, deflate
//
// The buckets checkpoints, notices, documents and attachments are drawn where they are read and written.
const (
	bucketDests       = "destinations"
	bucketFiles       = "files"
	bucketMarks       = "marks"
	bucketGenerations = "generations"
	bucketOutbox      = "outbox"
	bucketDead        = "dead_letters"

	bucketProjections = "projections"
	bucketFolds       = "folds"
	bucketCheckpoints = "checkpoints"
	bucketNotices     = "notices"
	bucketDocuments   = "documents"
	bucketAttachments = "attachments"
)

func bucketNames() []string {
	return []string{
		kv.BucketMeta, bucketDests, bucketFiles, bucketMarks, bucketGenerations, bucketOutbox, bucketDead,
		bucketProjections, bucketFolds, bucketCheckpoints, bucketNotices, bucketDocuments, bucketAttachments,
	}
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
