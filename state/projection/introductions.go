package projection

import (
	"bytes"
	"context"
	"fmt"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/kv"
)

// Introductions is what sessions were shown about themselves.
type Introductions struct{ db *DB }

// Introduction is what a session's Claude was shown about the session at its first start. It gets the same at every
// later start.
type Introduction struct {
	Session string `json:"-"`
	Name    string `json:"name"`
	Cwd     string `json:"cwd"`
	At      int64  `json:"at"` // Unix milliseconds
	// Copied means that the session began with another's history, in which documents may have been linked.
	Copied bool `json:"copied,omitempty"`
	// NotShown means that no hook has passed the introduction on yet.
	NotShown bool `json:"not_shown,omitempty"`
}

// Introduce stores the introduction of a session that has none, and returns the one that is stored. What was passed on
// stays passed on; otherwise a stored introduction does not change.
func (n *Introductions) Introduce(ctx context.Context, i Introduction) (kept Introduction, err error) {
	key := documentKey(i.Session, "")
	v, err := kv.SealJSON(documentVersion, key, i)
	if err != nil {
		return i, err
	}
	err = n.db.update(ctx, int64(len(v)), func(t *tx) error {
		kept = i
		old := t.Bucket(state.BucketDocuments).Get(key)
		if old == nil {
			return t.putDocumentRow(key, v)
		}
		kept = Introduction{Session: i.Session}
		if err := unsealJSON(key, old, &kept); err != nil || !kept.NotShown || i.NotShown {
			return err
		}
		kept.NotShown = false
		v, err := kv.SealJSON(documentVersion, key, kept)
		if err != nil {
			return err
		}
		return t.putDocumentRow(key, v)
	})
	if err != nil {
		return i, fmt.Errorf("store introduction: %w", err)
	}
	return kept, nil
}

// Get returns a session's introduction; false: there is none.
func (n *Introductions) Get(ctx context.Context, session string) (i Introduction, found bool, err error) {
	key := documentKey(session, "")
	i.Session = session
	err = n.db.State.View(ctx, func(tx *kv.Snapshot) error {
		v := tx.Bucket(state.BucketDocuments).Get(key)
		found = v != nil
		if !found {
			return nil
		}
		return unsealJSON(key, v, &i)
	})
	return i, found && err == nil, err
}

// Forget removes the introductions of sessions that were introduced before a time, in Unix milliseconds, and have no
// documents.
func (n *Introductions) Forget(ctx context.Context, before int64) error {
	err := n.db.update(ctx, 0, func(t *tx) error {
		b := t.Bucket(state.BucketDocuments)
		keys, err := oldIntroductions(b, before)
		if err != nil {
			return err
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

// oldIntroductions returns the keys that Forget removes. An introduction comes before the documents of its session, so
// it is taken back when one follows.
func oldIntroductions(b *kv.Bucket, before int64) (keys [][]byte, err error) {
	var last []byte // the session of the last key taken
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		switch session, path, _ := bytes.Cut(k, []byte{0}); {
		case len(path) > 0 && len(keys) > 0 && bytes.Equal(last, session):
			keys, last = keys[:len(keys)-1], nil
		case len(path) > 0:
		default:
			var i Introduction
			if err := unsealJSON(k, v, &i); err != nil {
				return nil, err
			}
			if last = nil; i.At < before {
				keys, last = append(keys, bytes.Clone(k)), bytes.Clone(session)
			}
		}
	}
	return keys, nil
}
