package projection

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// The bucket checkpoints. "at" is a time in Unix milliseconds whose sign bit is flipped, so that byte order is the
// order of time. seq comes from the bucket's sequence, and distinguishes those of one moment.
//
//	"c" u64 file | u64 at | u64 seq → sealed JSON Checkpoint
//	"i" id                          → the key of the above
//	"t" u64 at | u64 seq            → u64 file
//	"n"                             → u64 number of all
//	"l" model                       → sealed JSON []Compaction  automatic compactions; budgets.go
//	"m" model, "p" u64 file         → sealed u64 limit          set by the user; budgets.go
const (
	checkpointVersion = 1

	checkpointRows  = 'c'
	checkpointIDs   = 'i'
	checkpointTimes = 't'
	checkpointCount = 'n'
)

// Limits of the checkpoints that are kept. The oldest are removed.
const (
	checkpointsPerFile = 1000
	checkpointsInAll   = 20_000
)

// Checkpoints is the checkpoints of sessions, and the token budgets that follow from them or that a user set.
type Checkpoints struct{ db *DB }

// Checkpoint is a moment in a session that was recorded and sent.
type Checkpoint struct {
	ID          string      `json:"id"`
	File        tail.FileID `json:"-"`       // its transcript; Commit sets it
	Session     string      `json:"session"` // its stream's name
	Port        string      `json:"port,omitempty"`
	Trigger     string      `json:"trigger"`
	Tokens      int64       `json:"tokens"`
	Budget      int64       `json:"budget"`
	ContextHash string      `json:"context_hash"`
	Summary     string      `json:"summary"`
	ActiveFiles []string    `json:"active_files,omitempty"`
	At          time.Time   `json:"at"`
	Generation  uint32      `json:"generation"`
	Line        int64       `json:"line"`
	Model       string      `json:"model,omitempty"`
	// Automatic means that Claude Code compacted by itself at this many tokens, which shows the budget of its model.
	Automatic bool `json:"automatic,omitempty"`

	repeated bool // it was stored before this transaction
}

func checkpointsOf(id tail.FileID) []byte { return append([]byte{checkpointRows}, fileKey(id)...) }

const checkpointKeySize = 1 + 8 + 8 + 8

func checkpointKey(id tail.FileID, at time.Time, seq uint64) []byte {
	key := binary.BigEndian.AppendUint64(checkpointsOf(id), uint64(at.UnixMilli())^1<<63) // negative times first
	return binary.BigEndian.AppendUint64(key, seq)
}

// checkpointTime returns the key of a row in the order of time.
func checkpointTime(key []byte) []byte { return append([]byte{checkpointTimes}, key[9:]...) }

func checkpointID(id string) []byte { return append([]byte{checkpointIDs}, id...) }

func decodeCheckpoint(k, v []byte) (c Checkpoint, err error) {
	if len(k) != checkpointKeySize {
		return c, fmt.Errorf("%w: checkpoint key of %d bytes", state.ErrCorrupt, len(k))
	}
	if err := kv.UnsealJSON(checkpointVersion, k, v, &c); err != nil {
		return c, fmt.Errorf("read checkpoint: %w", err)
	}
	c.File = tail.FileID(binary.BigEndian.Uint64(k[1:]))
	return c, nil
}

// putCheckpoints stores a derivation's checkpoints. One whose id exists is left as it is: a transcript that is folded
// again finds the same checkpoints, under the same ids.
func (t *tx) putCheckpoints(d *Derivation) error {
	for i := range d.Checkpoints {
		c := &d.Checkpoints[i]
		c.File = d.File
		b := t.Bucket(state.BucketCheckpoints)
		if c.repeated = b.Get(checkpointID(c.ID)) != nil; c.repeated {
			continue
		}
		if err := t.putCheckpoint(b, c); err != nil {
			return err
		}
		if err := t.putCompaction(b, c); err != nil {
			return fmt.Errorf("learn budget: %w", err)
		}
	}
	if len(d.Checkpoints) == 0 {
		return nil
	}
	return t.boundCheckpoints(d.File)
}

func (t *tx) putCheckpoint(b *kv.Bucket, c *Checkpoint) error {
	seq, err := t.NextSequence(state.BucketCheckpoints)
	if err != nil {
		return fmt.Errorf("number checkpoint: %w", err)
	}
	k := checkpointKey(c.File, c.At, seq)
	v, err := kv.SealJSON(checkpointVersion, k, c)
	if err != nil {
		return err
	}
	for _, row := range [][2][]byte{{k, v}, {checkpointID(c.ID), k}, {checkpointTime(k), fileKey(c.File)}} {
		if err := t.Put("put checkpoint", b, row[0], row[1]); err != nil {
			return err
		}
	}
	return t.countCheckpoints(b, 1)
}

func (t *tx) countCheckpoints(b *kv.Bucket, n int64) error {
	count := binary.BigEndian.AppendUint64(nil, uint64(int64(checkpointTotal(b))+n))
	return t.Put("count checkpoints", b, []byte{checkpointCount}, count)
}

func checkpointTotal(b *kv.Bucket) uint64 {
	v := b.Get([]byte{checkpointCount})
	if len(v) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(v)
}

// boundCheckpoints removes the oldest ones of a file that has too many, and of all.
func (t *tx) boundCheckpoints(id tail.FileID) error {
	b := t.Bucket(state.BucketCheckpoints)
	keys := kv.Keys(b, checkpointsOf(id))
	for _, k := range keys[:max(0, len(keys)-checkpointsPerFile)] {
		if err := t.removeCheckpoint(b, k); err != nil {
			return err
		}
	}
	for checkpointTotal(b) > checkpointsInAll {
		k, v := b.Cursor().Seek([]byte{checkpointTimes})
		if len(k) != 17 || len(v) != 8 {
			return fmt.Errorf("%w: checkpoints are out of order", state.ErrCorrupt)
		}
		if err := t.removeCheckpoint(b, slices.Concat([]byte{checkpointRows}, v, k[1:])); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) removeCheckpoint(b *kv.Bucket, k []byte) error {
	v := b.Get(k)
	if v == nil {
		return fmt.Errorf("%w: a checkpoint is missing", state.ErrCorrupt)
	}
	c, err := decodeCheckpoint(k, v)
	if err != nil {
		return err
	}
	for _, key := range [][]byte{checkpointID(c.ID), checkpointTime(k), k} {
		if err := t.Delete("delete checkpoint", b, key); err != nil {
			return err
		}
	}
	return t.countCheckpoints(b, -1)
}

// dropCheckpoints removes a file's checkpoints, and the budget that was set for it.
func (t *tx) dropCheckpoints(id tail.FileID, _ string) error {
	b := t.Bucket(state.BucketCheckpoints)
	for _, k := range kv.Keys(b, checkpointsOf(id)) {
		if err := t.removeCheckpoint(b, k); err != nil {
			return err
		}
	}
	return t.putLimit(limitKey("", id), 0)
}

// Checkpoint returns the one with an id; false: there is none.
func (s *Checkpoints) Checkpoint(ctx context.Context, id string) (c Checkpoint, found bool, err error) {
	err = s.db.State.View(ctx, func(tx *kv.Snapshot) error {
		b := tx.Bucket(state.BucketCheckpoints)
		k := b.Get(checkpointID(id))
		if k == nil {
			return nil
		}
		found = true
		c, err = decodeCheckpoint(k, b.Get(k))
		return err
	})
	if err != nil {
		return Checkpoint{}, false, fmt.Errorf("read checkpoint %s: %w", id, err)
	}
	return c, found, nil
}

// List returns at most limit of a file's checkpoints, or of all files if file is 0: newest first, without the first
// offset ones. more is true when there are further ones.
func (s *Checkpoints) List(
	ctx context.Context, file tail.FileID, offset, limit int,
) (list []Checkpoint, more bool, err error) {
	prefix := []byte{checkpointTimes}
	if file != 0 {
		prefix = checkpointsOf(file)
	}
	err = s.db.State.View(ctx, func(tx *kv.Snapshot) error {
		b := tx.Bucket(state.BucketCheckpoints)
		c := b.Cursor()
		for k, v := lastWith(c, prefix); bytes.HasPrefix(k, prefix); k, v = c.Prev() {
			if offset > 0 {
				offset--
				continue
			}
			if more = len(list) == limit; more {
				return nil
			}
			if file == 0 {
				k = slices.Concat([]byte{checkpointRows}, v, k[1:])
				v = b.Get(k)
			}
			one, err := decodeCheckpoint(k, v)
			if err != nil {
				return err
			}
			list = append(list, one)
		}
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("read checkpoints: %w", err)
	}
	return list, more, nil
}

// lastWith moves to the last key that begins with prefix, or to one before it.
func lastWith(c *kv.Cursor, prefix []byte) (k, v []byte) {
	if k, _ := c.Seek(append(bytes.Clone(prefix), bytes.Repeat([]byte{0xff}, checkpointKeySize)...)); k == nil {
		return c.Last()
	}
	return c.Prev()
}
