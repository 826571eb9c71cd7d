package state

import (
	"context"
	"fmt"

	"github.com/ccship/ccship/state/kv"

	"github.com/ccship/ccship/outbox"
)

// Learned implements outbox.Memory. A destination that is not known yet taught nothing.
func (db *DB) Learned(ctx context.Context, dest string) (outbox.Learned, error) {
	id, ok := db.index.destID(dest)
	if !ok {
		return outbox.Learned{}, nil
	}
	var r destRow
	err := db.view(ctx, func(tx *kv.Snapshot) (err error) {
		k := destKey(id)
		_, r, err = decodeDestRow(k, tx.Bucket(bucketDests).Get(k))
		return err
	})
	if err != nil {
		return outbox.Learned{}, fmt.Errorf("read what %s taught: %w", dest, err)
	}
	return r.Learned, nil
}

// Learn implements outbox.Memory.
func (db *DB) Learn(ctx context.Context, dest string, l outbox.Learned) error {
	return db.update(ctx, 0, func(t *txn) error {
		id, err := t.destID(dest)
		if err != nil {
			return err
		}
		return t.putDest("put learned", id, destRow{URL: dest, Learned: l})
	})
}
