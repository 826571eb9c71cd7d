package state

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/ccship/ccship/state/kv"

	"github.com/ccship/ccship/tail"
)

// The bucket notices. A session's name holds no zero byte.
//
//	session | 0 | u64 seq → sealed JSON Pending             seq from the bucket's sequence, never reused
const pendingVersion = 1

// What is kept of notices that nobody takes.
const (
	pendingLife        = 24 * 60 * 60 // seconds
	pendingsPerSession = 20
	pendingsInAll      = 1000
)

// Kinds of a Pending beside the triggers of checkpoints.
const PendingDocument = "document"

// Pending is a notice that a session's Claude has not been told yet. It says what happened, not in which words.
type Pending struct {
	Session string `json:"-"`    // its stream's name
	Kind    string `json:"kind"` // a checkpoint's trigger, or PendingDocument
	At      int64  `json:"at"`   // Unix seconds when it was queued; set by Derive

	Checkpoint string `json:"checkpoint,omitempty"` // its id, as are:
	Tokens     int64  `json:"tokens,omitempty"`     // in use
	Budget     int64  `json:"budget,omitempty"`

	Path string `json:"path,omitempty"` // of a document that was linked
}

// heldPending is a notice in memory, with its key.
type heldPending struct {
	seq uint64
	Pending
}

func pendingPrefix(session string) []byte { return append([]byte(session), 0) }

func pendingKey(session string, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(pendingPrefix(session), seq)
}

func decodePending(k, v []byte) (h heldPending, err error) {
	i := len(k) - 9
	if i < 1 || k[i] != 0 {
		return h, fmt.Errorf("%w: notice key of %d bytes", ErrCorrupt, len(k))
	}
	if err := kv.UnsealJSON(pendingVersion, k, v, &h.Pending); err != nil {
		return h, fmt.Errorf("read notice: %w", err)
	}
	h.Session, h.seq = string(k[:i]), binary.BigEndian.Uint64(k[i+1:])
	return h, nil
}

// putPending queues a derivation's notices, but not those of checkpoints that were there before.
func (t *txn) putPending(d *Derivation) error {
	if len(d.Pending) == 0 {
		return nil
	}
	b := t.Bucket(bucketNotices)
	for i := range d.Pending {
		p := d.Pending[i]
		repeated := slices.ContainsFunc(d.Checkpoints, func(c Checkpoint) bool { return c.ID == p.Checkpoint && c.repeated })
		if p.Session == "" || repeated {
			continue
		}
		p.At = t.Now
		seq, err := b.NextSequence()
		if err != nil {
			return fmt.Errorf("number notice: %w", err)
		}
		k := pendingKey(p.Session, seq)
		v, err := kv.SealJSON(pendingVersion, k, &p)
		if err != nil {
			return err
		}
		if err := t.Put("put notice", b, k, v); err != nil {
			return err
		}
		t.delta.noticed = append(t.delta.noticed, heldPending{seq, p})
	}
	return t.boundPending(b)
}

// boundPending removes notices that are too old, and the oldest of too many.
func (t *txn) boundPending(b *kv.Bucket) error {
	var all []heldPending
	err := b.ForEach(func(k, v []byte) error {
		h, err := decodePending(k, v)
		all = append(all, h)
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b heldPending) int { return cmp.Compare(b.seq, a.seq) })
	of := map[string]int{}
	for i, h := range all {
		if of[h.Session]++; i >= pendingsInAll || of[h.Session] > pendingsPerSession || h.expired(t.Now) {
			if err := t.removePending(b, h); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Pending) expired(now int64) bool { return now-p.At > pendingLife }

func (t *txn) removePending(b *kv.Bucket, h heldPending) error {
	if err := t.Delete("delete notice", b, pendingKey(h.Session, h.seq)); err != nil {
		return err
	}
	t.delta.unnoticed = append(t.delta.unnoticed, h)
	return nil
}

// takePending removes what is queued for a session.
func (t *txn) takePending(session string) (taken []Pending, err error) {
	var all []heldPending
	b, prefix := t.Bucket(bucketNotices), pendingPrefix(session)
	c := b.Cursor()
	for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		h, err := decodePending(k, v)
		if err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	for _, h := range all {
		if !h.expired(t.Now) {
			taken = append(taken, h.Pending)
		}
		if err := t.removePending(b, h); err != nil {
			return nil, err
		}
	}
	return taken, nil
}

func (t *txn) dropPending(_ tail.FileID, session string) error {
	if session == "" {
		return nil
	}
	_, err := t.takePending(session)
	return err
}

// HasPending says whether something is queued for a session. It asks the memory only.
func (db *DB) HasPending(session string) bool {
	x := &db.index
	x.mu.Lock()
	defer x.mu.Unlock()
	now := time.Now().Unix()
	return slices.ContainsFunc(x.pending[session], func(h heldPending) bool { return !h.expired(now) })
}

// TakePending hands over what is queued for some sessions, each notice once: it is gone when this answers. Oldest first.
func (db *DB) TakePending(ctx context.Context, sessions ...string) (taken map[string][]Pending, err error) {
	err = db.update(ctx, 0, func(t *txn) error {
		taken = map[string][]Pending{}
		for _, session := range sessions {
			of, err := t.takePending(session)
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

// readPending reads the notices into the memory.
func readPending(x *index, tx *kv.Snapshot) error {
	return tx.Bucket(bucketNotices).ForEach(func(k, v []byte) error {
		h, err := decodePending(k, v)
		if err == nil {
			x.hold(h)
		}
		return err
	})
}

// hold takes a notice into the memory. The caller holds mu.
func (x *index) hold(h heldPending) {
	if x.pending == nil {
		x.pending = map[string][]heldPending{}
	}
	x.pending[h.Session] = append(x.pending[h.Session], h)
}

// applyPending follows a transaction. The caller holds mu.
func (x *index) applyPending(d *delta) {
	for _, h := range d.noticed {
		x.hold(h)
	}
	for _, gone := range d.unnoticed {
		left := slices.DeleteFunc(x.pending[gone.Session], func(h heldPending) bool { return h.seq == gone.seq })
		if x.pending[gone.Session] = left; len(left) == 0 {
			delete(x.pending, gone.Session)
		}
	}
}
