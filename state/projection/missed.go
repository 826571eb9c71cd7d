package projection

import (
	"strings"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// DocumentBlobs begins the names of blobs that are contents of documents. The document's path follows.
const DocumentBlobs = "documents/"

// MissedDocument is the version of a document whose content could not be sent, because its file was not what was
// queued.
type MissedDocument struct{ Session, Path, SHA256 string }

// missDocument marks the newest version of a document as not queued, when its blob leaves the outbox unsent. Otherwise
// the document would count as sent for ever, also when its file is back.
func (t *tx) missDocument(dest uint32, id tail.FileID, ref *outbox.BlobRef) error {
	path, is := strings.CutPrefix(ref.Name, DocumentBlobs)
	if !is {
		return nil
	}
	r, _, found, err := t.File(id)
	if err != nil || !found {
		return err
	}
	d := Document{Session: r.Stream.SessionID, Path: path}
	key := documentKey(d.Session, d.Path)
	v := t.Bucket(state.BucketDocuments).Get(key)
	if v == nil {
		return nil
	}
	if err := unsealJSON(key, v, &d); err != nil {
		return err
	}
	if !d.Linked || d.SHA256 != ref.SHA256 || d.Dest == "" {
		return nil
	}
	if to, err := t.Destination(d.Dest); err != nil || to != dest {
		return err
	}
	d.Dest = ""
	if v, err = kv.SealJSON(documentVersion, key, &d); err != nil {
		return err
	}
	t.delta.missed = append(t.delta.missed, MissedDocument{d.Session, d.Path, d.SHA256})
	return t.putDocumentRow(key, v)
}
