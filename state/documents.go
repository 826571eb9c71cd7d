package state

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/ccship/ccship/state/kv"

	"github.com/ccship/ccship/tail"
)

// The bucket documents. A session's name holds no zero byte, a path no control characters.
//
//	session | 0 | path → sealed JSON Document
//	session | 0        → sealed JSON Introduction
//	session | 0 | 1 | u64 line | tool use id → sealed JSON DocumentAsk
const documentVersion = 1

// Document is a file that belongs to a session, or did once: what was told of it last, so that versions count on.
type Document struct {
	Session string `json:"-"` // its stream's name
	Path    string `json:"-"` // relative to the session's working directory, slashes
	Linked  bool   `json:"linked,omitempty"`
	AddedAt int64  `json:"added_at"` // Unix milliseconds, when it was linked last
	AddedBy string `json:"added_by"` // by whom
	// Version rises with everything that is told of the document. ChangedAt is when it last did, in Unix milliseconds.
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
	// Dest is the server that it was queued for last; "" when what is known is not queued for any.
	Dest string `json:"dest,omitempty"`
}

// Stamp tells the states of a file apart, as far as its directory entry can. Times are in Unix nanoseconds.
type Stamp struct {
	Size       int64  `json:"size,omitempty"`
	ModTime    int64  `json:"mod_time,omitempty"`
	ChangeTime int64  `json:"change_time,omitempty"` // 0 where the system has none
	Inode      uint64 `json:"inode,omitempty"`       // the same
}

// Folder tells folders apart. Zero where the system has no numbers for them.
type Folder struct {
	Device uint64 `json:"device"` // may be another after a restart of the system
	Inode  uint64 `json:"inode"`
}

// DocumentAsk is a wish of the session's Claude to have a document linked or unlinked, found in the transcript and not
// done yet.
type DocumentAsk struct {
	Session string `json:"-"`
	Line    int64  `json:"-"` // of the transcript
	Tool    string `json:"-"` // the tool use id of the call
	Link    bool   `json:"link,omitempty"`
	Path    string `json:"path"`
	Base    string `json:"base,omitempty"` // where relative paths count from
	Done    bool   `json:"-"`              // it is to be forgotten
}

func (a *DocumentAsk) key() []byte {
	key := append(documentKey(a.Session, ""), askMark)
	return append(binary.BigEndian.AppendUint64(key, uint64(a.Line)), a.Tool...)
}

// askMark is what follows the session's name in the key of an ask.
const askMark = 1

// putAsks stores a derivation's asks, or removes those that are done.
func (t *txn) putAsks(d *Derivation) error {
	for i := range d.Asks {
		a := &d.Asks[i]
		key := a.key()
		v, err := sealJSON(key, a)
		if err != nil {
			return err
		}
		b := t.Bucket(bucketDocuments)
		switch {
		case !a.Done:
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

// Introduction is what a session's Claude was told of it at its first start, and is told again at every other.
type Introduction struct {
	Session string `json:"-"`
	Name    string `json:"name"`
	Cwd     string `json:"cwd"`
	At      int64  `json:"at"` // Unix milliseconds
}

func documentKey(session, path string) []byte {
	return append(append([]byte(session), 0), path...)
}

// sealJSON is a row's value.
func sealJSON(key []byte, row any) ([]byte, error) {
	return kv.SealJSON(documentVersion, key, row)
}

func unsealJSON(key, v []byte, row any) error {
	if err := kv.UnsealJSON(documentVersion, key, v, row); err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	return nil
}

// putDocuments stores a derivation's documents in place of what was known of them.
func (t *txn) putDocuments(d *Derivation) error {
	for i := range d.Documents {
		doc := &d.Documents[i]
		key := documentKey(doc.Session, doc.Path)
		v, err := sealJSON(key, doc)
		if err != nil {
			return err
		}
		if err := t.putDocumentRow(key, v); err != nil {
			return err
		}
	}
	return nil
}

func (t *txn) putDocumentRow(key, v []byte) error {
	return t.Put("put document", t.Bucket(bucketDocuments), key, v)
}

// dropDocuments removes all that is kept of a session's documents; of "" there is nothing.
func (t *txn) dropDocuments(_ tail.FileID, session string) error {
	if session == "" {
		return nil
	}
	b := t.Bucket(bucketDocuments)
	for _, k := range kv.Keys(b, documentKey(session, "")) {
		if err := t.Delete("drop document", b, k); err != nil {
			return err
		}
	}
	return nil
}

// DropDocuments removes all that is kept of the documents of a session, which need not have a transcript.
func (db *DB) DropDocuments(ctx context.Context, session string) error {
	if err := db.update(ctx, 0, func(t *txn) error { return t.dropDocuments(0, session) }); err != nil {
		return fmt.Errorf("drop documents: %w", err)
	}
	return nil
}

// Documents calls fn for every document there is or was, those of a session together, and asks for every session in
// which something is asked for that is not done.
func (db *DB) Documents(ctx context.Context, fn func(Document), asks func(session string)) error {
	return db.view(ctx, func(tx *kv.Snapshot) error {
		return tx.Bucket(bucketDocuments).ForEach(func(k, v []byte) error {
			session, rest, _ := bytes.Cut(k, []byte{0})
			switch {
			case len(rest) == 0:
				return nil
			case rest[0] == askMark:
				asks(string(session))
				return nil
			}
			d := Document{Session: string(session), Path: string(rest)}
			if err := unsealJSON(k, v, &d); err != nil {
				return err
			}
			fn(d)
			return nil
		})
	})
}

// DocumentAsks answers what is asked for in a session and not done, in the order of the lines.
func (db *DB) DocumentAsks(ctx context.Context, session string) (asks []DocumentAsk, err error) {
	prefix := append(documentKey(session, ""), askMark)
	err = db.view(ctx, func(tx *kv.Snapshot) error {
		c := tx.Bucket(bucketDocuments).Cursor()
		for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
			a, err := decodeAsk([]byte(session), k[len(prefix):], k, v)
			if err != nil {
				return err
			}
			asks = append(asks, a)
		}
		return nil
	})
	return asks, err
}

func decodeAsk(session, rest, k, v []byte) (a DocumentAsk, err error) {
	if len(rest) < 8 {
		return a, fmt.Errorf("%w: document key of %d bytes", ErrCorrupt, len(k))
	}
	a.Session, a.Line, a.Tool = string(session), int64(binary.BigEndian.Uint64(rest)), string(rest[8:])
	return a, unsealJSON(k, v, &a)
}

// Introduce keeps how a session was introduced, unless it was before: then it answers that.
func (db *DB) Introduce(ctx context.Context, i Introduction) (kept Introduction, err error) {
	key := documentKey(i.Session, "")
	v, err := sealJSON(key, i)
	if err != nil {
		return i, err
	}
	err = db.update(ctx, int64(len(v)), func(t *txn) error {
		kept = i
		if old := t.Bucket(bucketDocuments).Get(key); old != nil {
			return unsealJSON(key, old, &kept)
		}
		return t.putDocumentRow(key, v)
	})
	if err != nil {
		return i, fmt.Errorf("keep introduction: %w", err)
	}
	return kept, nil
}

// Introduction answers how a session was introduced; false: it was not.
func (db *DB) Introduction(ctx context.Context, session string) (i Introduction, found bool, err error) {
	key := documentKey(session, "")
	i.Session = session
	err = db.view(ctx, func(tx *kv.Snapshot) error {
		v := tx.Bucket(bucketDocuments).Get(key)
		found = v != nil
		if !found {
			return nil
		}
		return unsealJSON(key, v, &i)
	})
	return i, found && err == nil, err
}

// ForgetIntroductions removes those of sessions that were introduced before a time, in Unix milliseconds, and have no
// documents.
func (db *DB) ForgetIntroductions(ctx context.Context, before int64) error {
	err := db.update(ctx, 0, func(t *txn) error {
		var last []byte // an introduction, until a document of its session is seen
		var keys [][]byte
		b := t.Bucket(bucketDocuments)
		c := b.Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			var i Introduction
			switch session, path, _ := bytes.Cut(k, []byte{0}); {
			case len(path) > 0 && len(keys) > 0 && bytes.Equal(last, session):
				keys, last = keys[:len(keys)-1], nil
			case len(path) > 0:
			default:
				if err := unsealJSON(k, v, &i); err != nil {
					return err
				}
				if last = nil; i.At < before {
					keys, last = append(keys, clone(k)), clone(session)
				}
			}
		}
		for _, k := range keys {
			if err := t.Delete("delete introduction", b, k); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("forget introductions: %w", err)
	}
	return nil
}

// readDocuments checks every row.
func readDocuments(_ *index, tx *kv.Snapshot) error {
	return tx.Bucket(bucketDocuments).ForEach(func(k, v []byte) error {
		_, err := kv.Unseal(k, v, documentVersion)
		return err
	})
}
