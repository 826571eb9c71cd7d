package projection

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/kv"
)

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
