package state

import (
	"context"
	"fmt"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/kv"
)

// Learned implements outbox.Memory. Nothing is learned of a destination that has no row yet.
func (o *Outbox) Learned(ctx context.Context, dest string) (outbox.Learned, error) {
	id, ok := o.db.index.destID(dest)
	if !ok {
		return outbox.Learned{}, nil
	}
	var r destRow
	err := o.db.View(ctx, func(tx *kv.Snapshot) (err error) {
		k := destKey(id)
		_, r, err = decodeDestRow(k, tx.Bucket(bucketDests).Get(k))
		return err
	})
	if err != nil {
		return outbox.Learned{}, fmt.Errorf("read what was learned of %s: %w", dest, err)
	}
	return r.Learned, nil
}

// Learn implements outbox.Memory. What a server can do is kept over a restart: without it the first request after one
// would have to be the least that any server understands.
func (o *Outbox) Learn(ctx context.Context, dest string, l outbox.Learned) error {
	return o.db.Transact(ctx, 0, func(t *Tx) error {
		id, err := t.Destination(dest)
		if err != nil {
			return err
		}
		_, row, err := decodeDestRow(destKey(id), t.dests.Get(destKey(id)))
		if err != nil {
			return err
		}
		row.Learned = l
		return t.putDest("put learned", id, row)
	})
}
