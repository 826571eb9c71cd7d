package projection

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// The bucket notices. A session's name holds no zero byte.
//
//	session | 0 | u64 seq → sealed JSON Notice              seq from the bucket's sequence, never reused
const noticeVersion = 1

// Limits of the notices that are not collected.
const (
	noticeLife        = 24 * 60 * 60 // seconds
	noticesPerSession = 20
	noticesInAll      = 1000
)

// Notices is what sessions are to be shown, and what they were shown although the transcript does not show it yet.
type Notices struct{ db *DB }

// Kinds of a Notice that are not triggers of checkpoints.
const (
	NoticeDocument = "document"         // was linked
	NoticeRefused  = "document_refused" // was not linked as Claude asked
)

// Notice is something that a session's Claude is to be shown. It holds what happened, not the wording.
type Notice struct {
	Session string `json:"-"`    // its stream's name
	Seq     uint64 `json:"-"`    // its number, never reused; set by Commit
	Kind    string `json:"kind"` // a checkpoint's trigger, or one of the above
	At      int64  `json:"at"`   // Unix seconds when it was queued; set by Commit
	// Printed is when a hook printed it first, in Unix milliseconds; 0: none has.
	Printed int64 `json:"printed,omitempty"`

	Checkpoint string `json:"checkpoint,omitempty"` // its id, as are:
	Tokens     int64  `json:"tokens,omitempty"`     // in use
	Budget     int64  `json:"budget,omitempty"`

	Path   string `json:"path,omitempty"`   // of a document, as Claude or the user named it
	Reason string `json:"reason,omitempty"` // of a refusal, or what is not as expected of a linked document
}

func noticePrefix(session string) []byte { return append([]byte(session), 0) }

func noticeKey(session string, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(noticePrefix(session), seq)
}

func decodeNotice(k, v []byte) (p Notice, err error) {
	i := len(k) - 9
	if i < 1 || k[i] != 0 {
		return p, fmt.Errorf("%w: notice key of %d bytes", state.ErrCorrupt, len(k))
	}
	if err := kv.UnsealJSON(noticeVersion, k, v, &p); err != nil {
		return p, fmt.Errorf("read notice: %w", err)
	}
	p.Session, p.Seq = string(k[:i]), binary.BigEndian.Uint64(k[i+1:])
	return p, nil
}

// putNotices stores a derivation's notices, except for those of checkpoints that were stored before: a transcript that
// is folded again must not show its session the same twice. It removes those that the session has been shown.
func (t *tx) putNotices(d *Derivation) error {
	b := t.Bucket(state.BucketNotices)
	for i := range d.Shown {
		if err := t.removeNotice(b, d.Shown[i]); err != nil {
			return err
		}
	}
	if len(d.Notices) == 0 {
		return nil
	}
	for i := range d.Notices {
		p := d.Notices[i]
		repeated := slices.ContainsFunc(d.Checkpoints, func(c Checkpoint) bool { return c.ID == p.Checkpoint && c.repeated })
		if p.Session == "" || repeated {
			continue
		}
		var err error
		if p.Seq, err = t.NextSequence(state.BucketNotices); err != nil {
			return fmt.Errorf("number notice: %w", err)
		}
		p.At = t.Now
		if err := t.putNotice(b, p); err != nil {
			return err
		}
		t.delta.notices = append(t.delta.notices, noticeChange{p, true})
	}
	return t.boundNotices(b)
}

func (t *tx) putNotice(b *kv.Bucket, p Notice) error {
	k := noticeKey(p.Session, p.Seq)
	v, err := kv.SealJSON(noticeVersion, k, &p)
	if err != nil {
		return err
	}
	return t.Put("put notice", b, k, v)
}

// boundNotices removes notices that are too old, and the oldest of too many.
func (t *tx) boundNotices(b *kv.Bucket) error {
	var all []Notice
	err := b.ForEach(func(k, v []byte) error {
		p, err := decodeNotice(k, v)
		all = append(all, p)
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b Notice) int { return cmp.Compare(b.Seq, a.Seq) })
	of := map[string]int{}
	for i := range all {
		p := &all[i]
		if of[p.Session]++; i >= noticesInAll || of[p.Session] > noticesPerSession || p.expired(t.Now) {
			if err := t.removeNotice(b, *p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Notice) expired(now int64) bool { return now-p.At > noticeLife }

// removeNotice removes a notice; one that is gone already is no error.
func (t *tx) removeNotice(b *kv.Bucket, p Notice) error {
	k := noticeKey(p.Session, p.Seq)
	if b.Get(k) == nil {
		return nil
	}
	if err := t.Delete("delete notice", b, k); err != nil {
		return err
	}
	t.delta.notices = append(t.delta.notices, noticeChange{p, false})
	return nil
}

func (t *tx) dropNotices(_ tail.FileID, session string) error {
	if session == "" {
		return nil
	}
	var all []Notice
	b := t.Bucket(state.BucketNotices)
	err := kv.Each(b, noticePrefix(session), func(k, v []byte) error {
		p, err := decodeNotice(k, v)
		all = append(all, p)
		return err
	})
	if err != nil {
		return err
	}
	for i := range all {
		if err := t.removeNotice(b, all[i]); err != nil {
			return err
		}
	}
	return nil
}

// Of returns a session's notices, oldest first. They come from memory: a hook asks before every prompt.
func (n *Notices) Of(session string) (list []Notice) {
	m := n.db.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now().Unix()
	for i := range m.notices[session] {
		if p := &m.notices[session][i]; !p.expired(now) {
			list = append(list, *p)
		}
	}
	return list
}

// SetPrinted stores that hooks have printed notices, at the times in their field Printed. Those that are gone are left
// out.
func (n *Notices) SetPrinted(ctx context.Context, list []Notice) error {
	err := n.db.update(ctx, 0, func(t *tx) error {
		b := t.Bucket(state.BucketNotices)
		for _, p := range list {
			if b.Get(noticeKey(p.Session, p.Seq)) == nil {
				continue
			}
			if err := t.putNotice(b, p); err != nil {
				return err
			}
			t.delta.notices = append(t.delta.notices, noticeChange{p, true})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("store printed notices: %w", err)
	}
	return nil
}

// noticeChange is what a transaction changes in memory: a notice was stored, or removed.
type noticeChange struct {
	notice Notice
	stored bool
}

// applyNotices changes the notices in memory. The caller holds mu.
func (m *memory) applyNotices(changes []noticeChange) {
	for _, c := range changes {
		p := c.notice
		list := m.notices[p.Session]
		i, held := slices.BinarySearchFunc(list, p.Seq, func(p Notice, seq uint64) int { return cmp.Compare(p.Seq, seq) })
		switch {
		case c.stored && held:
			list[i] = p
		case c.stored:
			list = slices.Insert(list, i, p)
		case held:
			list = slices.Delete(list, i, i+1)
		}
		if m.notices[p.Session] = list; len(list) == 0 {
			delete(m.notices, p.Session)
		}
	}
}

// readNotices reads the notices into memory.
func (m *memory) readNotices(tx *kv.Snapshot) error {
	return tx.Bucket(state.BucketNotices).ForEach(func(k, v []byte) error {
		p, err := decodeNotice(k, v)
		if err == nil {
			m.applyNotices([]noticeChange{{p, true}})
		}
		return err
	})
}

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
