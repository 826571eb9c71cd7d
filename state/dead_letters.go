package state

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/kv"
)

// DeadLetters is the lines that a server refused for good. Most stay until a person retries or drops them.
type DeadLetters struct{ db *DB }

// DeadKey identifies a dead letter: the batch it was in, and its line.
type DeadKey struct {
	Seq  uint64
	Line int64
}

// DeadLetter is a dead letter as it is listed.
type DeadLetter struct {
	Key               DeadKey
	Dest              string
	Stream            outbox.Stream
	outbox.DeadLetter // without its Frame
}

// List returns all dead letters in the order of their batches.
func (l *DeadLetters) List(ctx context.Context) ([]DeadLetter, error) {
	var all []DeadLetter
	err := l.db.View(ctx, func(tx *kv.Snapshot) error {
		return tx.Bucket(bucketDead).ForEach(func(k, v []byte) error {
			key, err := splitDeadKey(k)
			if err != nil {
				return err
			}
			r, err := decodeDeadRow(k, v)
			if err != nil {
				return err
			}
			r.letter.Batch.Frame = nil
			for i := range r.letter.Batch.Edges {
				e := &r.letter.Batch.Edges[i]
				e.Before, e.After = clone(e.Before), clone(e.After)
			}
			all = append(all, DeadLetter{Key: key, Dest: l.db.index.destURL(r.dest), Stream: r.stream, DeadLetter: r.letter})
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return all, nil
}

// Get returns a dead letter with its Frame. ok is false when there is none with that key.
func (l *DeadLetters) Get(ctx context.Context, key DeadKey) (letter outbox.DeadLetter, ok bool, err error) {
	err = l.db.View(ctx, func(tx *kv.Snapshot) error {
		k := key.bytes()
		v := tx.Bucket(bucketDead).Get(k)
		if v == nil {
			return nil
		}
		r, err := decodeDeadRow(k, clone(v))
		letter, ok = r.letter, err == nil
		return err
	})
	return letter, ok, err
}

func splitDeadKey(k []byte) (DeadKey, error) {
	if len(k) != deadKeySize {
		return DeadKey{}, fmt.Errorf("%w: dead letter key of %d bytes", ErrCorrupt, len(k))
	}
	return DeadKey{Seq: binary.BigEndian.Uint64(k), Line: int64(binary.BigEndian.Uint64(k[8:]))}, nil
}

// Retry moves dead letters to the end of their streams' rows, for the destination that refused them. It returns how
// many of the keys existed.
func (l *DeadLetters) Retry(ctx context.Context, keys []DeadKey) (int, error) {
	return l.remove(ctx, keys, (*Tx).queueAgain)
}

// Drop removes dead letters for good. It returns how many of the keys existed.
func (l *DeadLetters) Drop(ctx context.Context, keys []DeadKey) (int, error) {
	return l.remove(ctx, keys, func(*Tx, *deadRow) error { return nil })
}

func (l *DeadLetters) remove(ctx context.Context, keys []DeadKey, do func(*Tx, *deadRow) error) (n int, err error) {
	err = l.db.Transact(ctx, 0, func(t *Tx) (err error) {
		n, err = t.removeDead(keys, do)
		return err
	})
	return n, err
}

func (t *Tx) queueAgain(r *deadRow) error {
	t.delta.requeued++
	return t.putBatch(r.dest, r.stream.ID, &r.letter.Batch)
}

// removeDead removes dead letters and runs do for each in the same transaction, so that one that is queued again is
// never in both places, or in none.
func (t *Tx) removeDead(keys []DeadKey, do func(*Tx, *deadRow) error) (n int, err error) {
	for _, key := range keys {
		k := key.bytes()
		v := t.dead.Get(k)
		if v == nil {
			continue
		}
		r, err := decodeDeadRow(k, v)
		if err != nil {
			return 0, err
		}
		if err := do(t, &r); err != nil {
			return 0, err
		}
		if err := t.deleteDead(k, v); err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// deleteDead removes the row of a dead letter.
func (t *Tx) deleteDead(k, v []byte) error {
	t.delta.countDead(k, v, -1)
	return t.Delete("delete dead", t.dead, k)
}

// deadStreams returns the streams that have dead letters.
func (t *Tx) deadStreams() (map[uint64]bool, error) {
	streams := map[uint64]bool{}
	err := t.dead.ForEach(func(k, v []byte) error {
		r, err := decodeDeadRow(k, v)
		streams[r.stream.ID] = true
		return err
	})
	return streams, err
}

const (
	judgeRest = 24 * time.Hour // before the same server has the same dead letters queued for it again
	maxJudges = 16             // servers that a destination remembers
)

// newServerVersion notes who answers, a store and the version of its server. It reports whether that is another one
// than before, that has not had the dead letters lately: behind one address two may answer in turn.
func (r *destRow) newServerVersion(name string, now time.Time) bool {
	if r.Judge == name {
		return false
	}
	r.Judge = name
	if before, known := r.Judges[name]; known && now.Sub(time.Unix(before, 0)).Abs() < judgeRest {
		return false
	}
	if r.Judges == nil {
		r.Judges = map[string]int64{}
	}
	if r.Judges[name] = now.Unix(); len(r.Judges) > maxJudges {
		older := func(a, b string) int { return cmp.Compare(r.Judges[a], r.Judges[b]) }
		delete(r.Judges, slices.MinFunc(slices.Collect(maps.Keys(r.Judges)), older))
	}
	return true
}

// retryDeadLetters queues the dead letters of a destination again. Those that cannot be read stay: no server can take
// them. So do those that were replaced: they are compared first.
func (t *Tx) retryDeadLetters(dest uint32) error {
	var keys []DeadKey // a cursor skips keys when its bucket is deleted from on the way
	err := t.dead.ForEach(func(k, v []byte) error {
		r, err := decodeDeadRow(k, v)
		why := r.letter.Reason
		if err == nil && r.dest == dest && why != outbox.ReasonDamaged && why != ReasonReplaced {
			keys = append(keys, DeadKey{Seq: r.letter.Batch.Seq, Line: r.letter.Line})
		}
		return err
	})
	if err == nil {
		_, err = t.removeDead(keys, (*Tx).queueAgain)
	}
	return err
}
