package projection

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// The bucket documents. A session's name holds no zero byte, a path no control characters.
//
//	session | 0 | path → sealed JSON Document
//	session | 0        → sealed JSON Introduction
//	session | 0 | 1 | u64 line | tool use id → sealed JSON LinkRequest
const documentVersion = 1

// Documents is the documents of sessions.
type Documents struct{ db *DB }

// Document is a file that is or was linked to a session: what the server got of it last, so that versions
// continue.
type Document struct {
	Session string `json:"-"` // its stream's name
	Path    string `json:"-"` // relative to the session's working directory, slashes
	Linked  bool   `json:"linked,omitempty"`
	AddedAt int64  `json:"added_at"` // Unix milliseconds, when it was linked last
	AddedBy string `json:"added_by"` // by whom
	// Version grows with every event of the document. ChangedAt is when it last did, in Unix milliseconds.
	Version   int64  `json:"version"`
	ChangedAt int64  `json:"changed_at"`
	By        string `json:"by,omitempty"` // who made the version
	Size      int64  `json:"size,omitempty"`
	SHA256    string `json:"sha256,omitempty"` // hex; "" when it was not read
	Deleted   bool   `json:"deleted,omitempty"`
	TooLarge  bool   `json:"too_large,omitempty"`
	Stat      Stamp  `json:"stat"` // of the file when it was read
	// Folder is the session's working directory, as it was when the document was linked.
	Folder Folder `json:"folder,omitzero"`
	// Dest is the server that this version was queued for; "" when it is queued for none.
	Dest string `json:"dest,omitempty"`
}

// Stamp distinguishes the states of a file, as far as its directory entry can. Times are in Unix nanoseconds.
type Stamp struct {
	Size       int64  `json:"size,omitempty"`
	ModTime    int64  `json:"mod_time,omitempty"`
	ChangeTime int64  `json:"change_time,omitempty"` // 0 where the system has none
	Inode      uint64 `json:"inode,omitempty"`       // the same
}

// Folder identifies a folder. Zero where the system has no numbers for folders.
type Folder struct {
	Device uint64 `json:"device"` // may be another after a restart of the system
	Inode  uint64 `json:"inode"`
}

func documentKey(session, path string) []byte {
	return append(append([]byte(session), 0), path...)
}

func unsealJSON(key, v []byte, row any) error {
	if err := kv.UnsealJSON(documentVersion, key, v, row); err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	return nil
}

// putDocuments stores a derivation's documents instead of what was stored of them.
func (t *tx) putDocuments(d *Derivation) error {
	for i := range d.Documents {
		doc := &d.Documents[i]
		key := documentKey(doc.Session, doc.Path)
		v, err := kv.SealJSON(documentVersion, key, doc)
		if err != nil {
			return err
		}
		if err := t.putDocumentRow(key, v); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) putDocumentRow(key, v []byte) error {
	return t.Put("put document", t.Bucket(state.BucketDocuments), key, v)
}

// dropDocuments removes all that is kept of a session's documents, its introduction and link requests among it.
func (t *tx) dropDocuments(_ tail.FileID, session string) error {
	if session == "" {
		return nil
	}
	return t.DeleteAll("drop document", t.Bucket(state.BucketDocuments), documentKey(session, ""))
}

// Drop removes all that is kept of the documents of a session, which need not have a transcript.
func (d *Documents) Drop(ctx context.Context, session string) error {
	if err := d.db.update(ctx, 0, func(t *tx) error { return t.dropDocuments(0, session) }); err != nil {
		return fmt.Errorf("drop documents: %w", err)
	}
	return nil
}

// Each calls fn for every document, linked or not, those of a session in a row, and requests for every session that has
// link requests, once for each request.
func (d *Documents) Each(ctx context.Context, fn func(Document), requests func(session string)) error {
	return d.db.State.View(ctx, func(tx *kv.Snapshot) error {
		return tx.Bucket(state.BucketDocuments).ForEach(func(k, v []byte) error {
			session, rest, _ := bytes.Cut(k, []byte{0})
			switch {
			case len(rest) == 0:
				return nil
			case rest[0] == linkRequestMark:
				requests(string(session))
				return nil
			}
			doc := Document{Session: string(session), Path: string(rest)}
			if err := unsealJSON(k, v, &doc); err != nil {
				return err
			}
			fn(doc)
			return nil
		})
	})
}

// readDocuments checks every row.
func readDocuments(tx *kv.Snapshot) error {
	return tx.Bucket(state.BucketDocuments).ForEach(func(k, v []byte) error {
		_, err := kv.Unseal(k, v, documentVersion)
		return err
	})
}

// LinkRequest is a request of a session's Claude to link or unlink a document. It was found in the transcript and is
// not done yet.
type LinkRequest struct {
	Session string `json:"-"`
	Line    int64  `json:"-"` // of the transcript
	Tool    string `json:"-"` // the tool use id of the call
	Link    bool   `json:"link,omitempty"`
	Path    string `json:"path"`
	Base    string `json:"base,omitempty"` // relative paths begin here
	Done    bool   `json:"-"`              // true: remove the row
}

func (r *LinkRequest) key() []byte {
	key := append(documentKey(r.Session, ""), linkRequestMark)
	return append(binary.BigEndian.AppendUint64(key, uint64(r.Line)), r.Tool...)
}

// linkRequestMark follows the session's name in the key of a link request. No path begins with it.
const linkRequestMark = 1

// putLinkRequests stores a derivation's link requests, and removes those that are done.
func (t *tx) putLinkRequests(d *Derivation) error {
	for i := range d.LinkRequests {
		r := &d.LinkRequests[i]
		key := r.key()
		v, err := kv.SealJSON(documentVersion, key, r)
		if err != nil {
			return err
		}
		b := t.Bucket(state.BucketDocuments)
		switch {
		case !r.Done:
			err = t.putDocumentRow(key, v)
		case b.Get(key) != nil:
			err = t.Delete("delete request", b, key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// LinkRequests returns the open requests of a session, in the order of their lines.
func (d *Documents) LinkRequests(ctx context.Context, session string) (all []LinkRequest, err error) {
	prefix := append(documentKey(session, ""), linkRequestMark)
	err = d.db.State.View(ctx, func(tx *kv.Snapshot) error {
		return kv.Each(tx.Bucket(state.BucketDocuments), prefix, func(k, v []byte) error {
			r, err := decodeLinkRequest(session, k[len(prefix):], k, v)
			all = append(all, r)
			return err
		})
	})
	return all, err
}

// decodeLinkRequest reads a row. rest is its key after the mark.
func decodeLinkRequest(session string, rest, k, v []byte) (r LinkRequest, err error) {
	if len(rest) < 8 {
		return r, fmt.Errorf("%w: document key of %d bytes", state.ErrCorrupt, len(k))
	}
	r.Session, r.Line, r.Tool = session, int64(binary.BigEndian.Uint64(rest)), string(rest[8:])
	return r, unsealJSON(k, v, &r)
}
