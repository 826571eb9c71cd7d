package projection

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// The bucket attachments records which files of a session's folder were queued for a server, so that each is sent once:
//
//	u32 destination | u64 file | name → sealed {size, modification time, sha256}

const attachmentVersion = 1

// Attachment is a file in the folder next to a transcript, as it was when it was queued.
type Attachment struct {
	Name          string // path below the session's folder, slashes; at most MaxAttachmentName bytes
	Size, ModTime int64  // bytes; Unix nanoseconds
	SHA256        string // lower-case hex
}

// MaxAttachmentName is the longest name that is queued, in bytes: bbolt limits the length of keys.
const MaxAttachmentName = 900

// Attachments is which attachments were queued.
type Attachments struct{ db *DB }

// fileKey returns the key of a file's row in the buckets that have one for each.
func fileKey(id tail.FileID) []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)) }

// attachmentKey begins the keys of a destination's rows.
func attachmentKey(dest uint32) []byte { return binary.BigEndian.AppendUint32(nil, dest) }

// attachmentsOf begins the keys of a file's rows for a destination.
func attachmentsOf(dest uint32, file tail.FileID) []byte {
	return binary.BigEndian.AppendUint64(attachmentKey(dest), uint64(file))
}

// Queued returns what of a transcript's attachments was queued for a server, by name.
func (a *Attachments) Queued(ctx context.Context, dest string, file tail.FileID) (map[string]Attachment, error) {
	queued := map[string]Attachment{}
	id, ok := a.db.State.DestinationNumber(dest)
	if !ok {
		return queued, ctx.Err()
	}
	err := a.db.State.View(ctx, func(tx *kv.Snapshot) error {
		prefix := attachmentsOf(id, file)
		return kv.Each(tx.Bucket(state.BucketAttachments), prefix, func(k, v []byte) error {
			f := Attachment{Name: string(k[len(prefix):])}
			err := kv.ReadRow("attachments row", attachmentVersion, k, v, f.layout)
			queued[f.Name] = f
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read queued attachments: %w", err)
	}
	return queued, nil
}

// Queue queues attachments of a transcript for a server and records them, in one transaction. batches[i], which gets
// its Seq, is the blob of files[i]. Nothing happens when the transcript's lines go to another server by now.
func (a *Attachments) Queue(
	ctx context.Context, dest string, file tail.FileID, files []Attachment, batches []outbox.Batch,
) error {
	var size int64
	for i := range batches {
		size += int64(len(batches[i].Frame))
	}
	err := a.db.update(ctx, size, func(t *tx) error {
		id, err := t.Destination(dest)
		if err != nil {
			return err
		}
		_, to, found, err := t.File(file)
		if err != nil || !found || to != id {
			return err
		}
		for i := range files {
			k := append(attachmentsOf(id, file), files[i].Name...)
			v := kv.SealRow(attachmentVersion, k, 96, files[i].layout)
			if err := t.Put("put attachment", t.Bucket(state.BucketAttachments), k, v); err != nil {
				return err
			}
			if err := t.Queue(id, file, &batches[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("queue attachments: %w", err)
	}
	return nil
}

func (f *Attachment) layout(c *kv.Codec) {
	kv.Number(c, &f.Size, &f.ModTime)
	c.String(&f.SHA256)
}

// Forget removes the record of what was queued of a transcript for a server, or with file 0 of all of them, so that it
// is queued again.
func (a *Attachments) Forget(ctx context.Context, dest string, file tail.FileID) error {
	err := a.db.update(ctx, 0, func(t *tx) error {
		id, known := a.db.State.DestinationNumber(dest)
		if !known {
			return nil
		}
		prefix := attachmentKey(id)
		if file != 0 {
			prefix = attachmentsOf(id, file)
		}
		return t.dropAttachmentRows(prefix)
	})
	if err != nil {
		return fmt.Errorf("forget queued attachments: %w", err)
	}
	return nil
}

// dropAttachments removes the record of a transcript's attachments, for every destination.
func (t *tx) dropAttachments(file tail.FileID) error {
	for _, dest := range t.Destinations() {
		if err := t.dropAttachmentRows(attachmentsOf(dest, file)); err != nil {
			return err
		}
	}
	return nil
}

// dropAttachmentRows removes the rows whose keys begin with prefix.
func (t *tx) dropAttachmentRows(prefix []byte) error {
	return t.DeleteAll("drop attachment", t.Bucket(state.BucketAttachments), prefix)
}

// missAttachment removes the record of an attachment whose blob leaves the outbox unsent.
func (t *tx) missAttachment(dest uint32, file tail.FileID, blob *outbox.BlobRef) error {
	rows, key := t.Bucket(state.BucketAttachments), append(attachmentsOf(dest, file), blob.Name...)
	if rows.Get(key) == nil {
		return nil
	}
	return t.Delete("drop attachment", rows, key)
}
