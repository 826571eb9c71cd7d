package state

import (
	"bytes"
	"context"
	"fmt"

	"github.com/ccship/ccship/state/kv"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

// The bucket blobs remembers which files beside a transcript were queued for a server, so that each is once:
//
//	u32 destination | u64 file | name → sealed {size, modification time, sha256}

const blobRowVersion = 1

// BesideFile is a file beside a transcript, as it was when it was queued.
type BesideFile struct {
	Name          string // path below the session's folder, slashes; at most MostBesideName bytes
	Size, ModTime int64  // bytes; Unix nanoseconds
	SHA256        string // lower-case hex
}

// MostBesideName is how many bytes the name of a file beside a transcript may have.
const MostBesideName = 900

func blobKey(dest uint32, file tail.FileID, name string) []byte {
	return append(streamPrefix(dest, uint64(file)), name...)
}

// Beside answers what of the files beside a transcript was queued for a server, by name.
func (db *DB) Beside(ctx context.Context, dest string, file tail.FileID) (map[string]BesideFile, error) {
	queued := map[string]BesideFile{}
	id, ok := db.index.destID(dest)
	if !ok {
		return queued, ctx.Err()
	}
	err := db.view(ctx, func(tx *kv.Snapshot) error {
		prefix := streamPrefix(id, uint64(file))
		c := tx.Bucket(bucketAttachments).Cursor()
		for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
			v, err := kv.Unseal(k, v, blobRowVersion)
			if err != nil {
				return fmt.Errorf("read blobs row: %w", err)
			}
			d := kv.NewDecoder(v, nil)
			f := BesideFile{Name: string(k[len(prefix):]), Size: d.Int(), ModTime: d.Int(), SHA256: d.String()}
			if err := d.End(); err != nil {
				return fmt.Errorf("read blobs row: %w", err)
			}
			queued[f.Name] = f
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read what was queued beside a transcript: %w", err)
	}
	return queued, nil
}

// QueueBeside queues files beside a transcript for a server, and remembers them, in one transaction. batches[i], which
// gets its Seq, is the blob of files[i]. Nothing happens when the transcript's lines go to another server by now.
func (db *DB) QueueBeside(ctx context.Context, dest string, file tail.FileID, files []BesideFile, batches []outbox.Batch) error {
	var size int64
	for i := range batches {
		size += int64(len(batches[i].Frame))
	}
	err := db.update(ctx, size, func(t *txn) error {
		id, err := t.destID(dest)
		if err != nil {
			return err
		}
		f, found, err := t.file(file)
		if err != nil || !found || f.dest != id {
			return err
		}
		for i := range files {
			if err := t.putBeside(blobKey(id, file, files[i].Name), &files[i]); err != nil {
				return err
			}
			if err := t.putBatch(id, uint64(file), &batches[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("queue files beside a transcript: %w", err)
	}
	return nil
}

func (t *txn) putBeside(k []byte, f *BesideFile) error {
	v := kv.AppendString(kv.AppendInt(kv.AppendInt(kv.NewSealed(blobRowVersion, 96), f.Size), f.ModTime), f.SHA256)
	return t.Put("put beside", t.Bucket(bucketAttachments), k, kv.Seal(k, v))
}

// ForgetBeside forgets what was queued for a server, so that it is queued again.
func (db *DB) ForgetBeside(ctx context.Context, dest string) error {
	err := db.update(ctx, 0, func(t *txn) error {
		id, known := t.known.destID(dest)
		if !known {
			return nil
		}
		return t.dropBlobRows(destKey(id))
	})
	if err != nil {
		return fmt.Errorf("forget what was queued beside transcripts: %w", err)
	}
	return nil
}

// dropBeside forgets what was queued beside a transcript, for any destination.
func (t *txn) dropBeside(file tail.FileID) error {
	dests := t.dests.Cursor()
	for k, _ := dests.First(); k != nil; k, _ = dests.Next() {
		if err := t.dropBlobRows(append(clone(k), fileKey(file)...)); err != nil {
			return err
		}
	}
	return nil
}

// dropBlobRows removes the rows whose keys begin with prefix.
func (t *txn) dropBlobRows(prefix []byte) error {
	b := t.Bucket(bucketAttachments)
	for _, k := range kv.Keys(b, prefix) {
		if err := t.Delete("drop beside", b, k); err != nil {
			return err
		}
	}
	return nil
}

// missBeside forgets a file beside a transcript, or a document's newest version, whose blob is being settled without
// having been sent: should it be there after all, it is queued as it is then.
func (t *txn) missBeside(dest uint32, stream, seq uint64) error {
	k := rowKey(queueOf(dest, true), stream, seq)
	v := t.outbox.Get(k)
	if v == nil {
		return nil
	}
	b, _, _, err := decodeBatchRow(k, v)
	if err != nil {
		return err
	}
	if err := t.missDocument(dest, stream, &b.Blob); err != nil {
		return err
	}
	rows, key := t.Bucket(bucketAttachments), blobKey(dest, tail.FileID(stream), b.Blob.Name)
	if rows.Get(key) == nil {
		return nil
	}
	return t.Delete("drop beside", rows, key)
}
