package state

import (
	"strings"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

// DocumentBlobs begins the names of blobs that are the contents of documents; their paths follow.
const DocumentBlobs = "documents/"

// MissedDocument is the version of a document whose content could not be sent, for its file was not what was queued.
type MissedDocument struct{ Session, Path, SHA256 string }

// missDocument has the newest version of a document count as not queued for a server, when it is a blob that is being
// settled without having been sent: its file may be there again.
func (t *txn) missDocument(dest uint32, stream uint64, ref *outbox.BlobRef) error {
	path, is := strings.CutPrefix(ref.Name, DocumentBlobs)
	if !is {
		return nil
	}
	f, found, err := t.file(tail.FileID(stream))
	if err != nil || !found {
		return err
	}
	d := Document{Session: f.facts.Stream.SessionID, Path: path}
	key := documentKey(d.Session, d.Path)
	v := t.Bucket(bucketDocuments).Get(key)
	if v == nil {
		return nil
	}
	if err := unsealJSON(key, v, &d); err != nil {
		return err
	}
	if !d.Linked || d.SHA256 != ref.SHA256 || d.Dest == "" {
		return nil
	}
	if to, err := t.destID(d.Dest); err != nil || to != dest {
		return err
	}
	d.Dest = ""
	if v, err = sealJSON(key, &d); err != nil {
		return err
	}
	t.delta.missed = append(t.delta.missed, MissedDocument{d.Session, d.Path, d.SHA256})
	return t.putDocumentRow(key, v)
}
