package state

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/ccship/ccship/state/kv"

	"github.com/ccship/ccship/outbox"
)

// DeadKey names a dead letter: the batch it was in, and its line.
type DeadKey struct {
	Seq  uint64
	Line int64
}

// Dead is a dead letter as it is listed.
type Dead struct {
	Key               DeadKey
	Dest              string
	Stream            outbox.Stream
	outbox.DeadLetter // without its Frame
}

// DeadLetters lists all dead letters in the order of their batches.
func (db *DB) DeadLetters(ctx context.Context) ([]Dead, error) {
	var all []Dead
	err := db.view(ctx, func(tx *kv.Snapshot) error {
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
			all = append(all, Dead{Key: key, Dest: db.index.destURL(r.dest), Stream: r.stream, DeadLetter: r.letter})
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return all, nil
}

func splitDeadKey(k []byte) (DeadKey, error) {
	if len(k) != deadKeySize {
		return DeadKey{}, fmt.Errorf("%w: dead letter key of %d bytes", ErrCorrupt, len(k))
	}
	return DeadKey{Seq: binary.BigEndian.Uint64(k), Line: int64(binary.BigEndian.Uint64(k[8:]))}, nil
}

// RetryDead puts dead letters at the end of their streams' rows, for the destination that refused them, and says how
// many of the keys there were.
func (db *DB) RetryDead(ctx context.Context, keys []DeadKey) (int, error) {
	return db.takeDead(ctx, keys, func(t *txn, r *deadRow) error {
		return t.putBatch(r.dest, r.stream.ID, &r.letter.Batch)
	})
}

// DropDead removes dead letters for good, and says how many of the keys there were.
func (db *DB) DropDead(ctx context.Context, keys []DeadKey) (int, error) {
	return db.takeDead(ctx, keys, func(*txn, *deadRow) error { return nil })
}

// takeDead removes dead letters, and does something with each in the same transaction.
func (db *DB) takeDead(ctx context.Context, keys []DeadKey, do func(*txn, *deadRow) error) (n int, err error) {
	err = db.update(ctx, 0, func(t *txn) error {
		n = 0
		for _, key := range keys {
			k := key.bytes()
			v := t.dead.Get(k)
			if v == nil {
				continue
			}
			r, err := decodeDeadRow(k, v)
			if err != nil {
				return err
			}
			if err := do(t, &r); err != nil {
				return err
			}
			t.delta.countDead(k, v, -1)
			if err := t.Delete("delete dead", t.dead, k); err != nil {
				return err
			}
			n++
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// deadStreams answers the streams that have dead letters.
func (t *txn) deadStreams() (map[uint64]bool, error) {
	streams := map[uint64]bool{}
	err := t.dead.ForEach(func(k, v []byte) error {
		r, err := decodeDeadRow(k, v)
		streams[r.stream.ID] = true
		return err
	})
	return streams, err
}
