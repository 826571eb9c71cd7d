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

// Notices is what sessions are to be told and were not told yet.
type Notices struct{ db *DB }

// NoticeDocument is a Notice's Kind when it is not the trigger of a checkpoint.
const NoticeDocument = "document"

// Notice is something that a session's Claude is to be told. It holds what happened, not the wording.
type Notice struct {
	Session string `json:"-"`    // its stream's name
	Kind    string `json:"kind"` // a checkpoint's trigger, or NoticeDocument
	At      int64  `json:"at"`   // Unix seconds when it was queued; set by Commit

	Checkpoint string `json:"checkpoint,omitempty"` // its id, as are:
	Tokens     int64  `json:"tokens,omitempty"`     // in use
	Budget     int64  `json:"budget,omitempty"`

	Path string `json:"path,omitempty"` // of a document that was linked
}

// heldNotice is a notice in memory, with the number in its key.
type heldNotice struct {
	seq uint64
	Notice
}

func noticePrefix(session string) []byte { return append([]byte(session), 0) }

func noticeKey(session string, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(noticePrefix(session), seq)
}

func decodeNotice(k, v []byte) (h heldNotice, err error) {
	i := len(k) - 9
	if i < 1 || k[i] != 0 {
		return h, fmt.Errorf("%w: notice key of %d bytes", state.ErrCorrupt, len(k))
	}
	if err := kv.UnsealJSON(noticeVersion, k, v, &h.Notice); err != nil {
		return h, fmt.Errorf("read notice: %w", err)
	}
	h.Session, h.seq = string(k[:i]), binary.BigEndian.Uint64(k[i+1:])
	return h, nil
}

// putNotices stores a derivation's notices, except for those of checkpoints that were stored before: a transcript that
// is folded again must not tell its session the same twice.
func (t *tx) putNotices(d *Derivation) error {
	if len(d.Notices) == 0 {
		return nil
	}
	b := t.Bucket(state.BucketNotices)
	for i := range d.Notices {
		p := d.Notices[i]
		repeated := slices.ContainsFunc(d.Checkpoints, func(c Checkpoint) bool { return c.ID == p.Checkpoint && c.repeated })
		if p.Session == "" || repeated {
			continue
		}
		p.At = t.Now
		seq, err := t.NextSequence(state.BucketNotices)
		if err != nil {
			return fmt.Errorf("number notice: %w", err)
		}
		k := noticeKey(p.Session, seq)
		v, err := kv.SealJSON(noticeVersion, k, &p)
		if err != nil {
			return err
		}
		if err := t.Put("put notice", b, k, v); err != nil {
			return err
		}
		t.delta.queued = append(t.delta.queued, heldNotice{seq, p})
	}
	return t.boundNotices(b)
}

// boundNotices removes notices that are too old, and the oldest of too many.
func (t *tx) boundNotices(b *kv.Bucket) error {
	var all []heldNotice
	err := b.ForEach(func(k, v []byte) error {
		h, err := decodeNotice(k, v)
		all = append(all, h)
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b heldNotice) int { return cmp.Compare(b.seq, a.seq) })
	of := map[string]int{}
	for i, h := range all {
		if of[h.Session]++; i >= noticesInAll || of[h.Session] > noticesPerSession || h.expired(t.Now) {
			if err := t.removeNotice(b, h); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Notice) expired(now int64) bool { return now-p.At > noticeLife }

func (t *tx) removeNotice(b *kv.Bucket, h heldNotice) error {
	if err := t.Delete("delete notice", b, noticeKey(h.Session, h.seq)); err != nil {
		return err
	}
	t.delta.removed = append(t.delta.removed, h)
	return nil
}

// takeNotices removes and returns what is stored for a session.
func (t *tx) takeNotices(session string) (taken []Notice, err error) {
	var all []heldNotice
	b, prefix := t.Bucket(state.BucketNotices), noticePrefix(session)
	c := b.Cursor()
	for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		h, err := decodeNotice(k, v)
		if err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	for _, h := range all {
		if !h.expired(t.Now) {
			taken = append(taken, h.Notice)
		}
		if err := t.removeNotice(b, h); err != nil {
			return nil, err
		}
	}
	return taken, nil
}

func (t *tx) dropNotices(_ tail.FileID, session string) error {
	if session == "" {
		return nil
	}
	_, err := t.takeNotices(session)
	return err
}

// Has reports whether there is something to tell a session. It comes from memory: a hook asks before every prompt.
func (n *Notices) Has(session string) bool {
	m := n.db.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now().Unix()
	return slices.ContainsFunc(m.notices[session], func(h heldNotice) bool { return !h.expired(now) })
}

// Take returns the notices of some sessions, oldest first, and removes them in the same transaction: each is returned
// once. A crash after that loses a notice rather than telling it twice.
func (n *Notices) Take(ctx context.Context, sessions ...string) (taken map[string][]Notice, err error) {
	err = n.db.update(ctx, 0, func(t *tx) error {
		taken = map[string][]Notice{}
		for _, session := range sessions {
			of, err := t.takeNotices(session)
			if err != nil {
				return err
			}
			if len(of) > 0 {
				taken[session] = of
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("take notices: %w", err)
	}
	return taken, nil
}

// readNotices reads the notices into memory.
func (m *memory) readNotices(tx *kv.Snapshot) error {
	return tx.Bucket(state.BucketNotices).ForEach(func(k, v []byte) error {
		h, err := decodeNotice(k, v)
		if err == nil {
			m.hold(h)
		}
		return err
	})
}
