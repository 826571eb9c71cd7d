package state

import (
	"bytes"
	"context"
	"fmt"

	"go.etcd.io/bbolt"
)

const keptPrefix = "kept/"

// Remember keeps a few bytes of the owner's under a name, durably; nil forgets them.
func (db *DB) Remember(ctx context.Context, name string, value []byte) error {
	key := []byte(keptPrefix + name)
	err := db.submit(ctx, int64(len(value)), func(t *txn) error {
		meta := t.tx.Bucket([]byte(bucketMeta))
		var want []byte
		if value != nil {
			want = seal(key, append(newSealed(1, len(value)), value...))
		}
		if old := meta.Get(key); bytes.Equal(old, want) && (old == nil) == (want == nil) {
			return nil
		}
		if err := t.fault("remember"); err != nil {
			return err
		}
		t.dirty = true
		if want == nil {
			return meta.Delete(key)
		}
		return meta.Put(key, want)
	})
	if err != nil {
		return fmt.Errorf("remember %s: %w", name, err)
	}
	return nil
}

// Remembered is what was kept under a name, nil when nothing is.
func (db *DB) Remembered(ctx context.Context, name string) (value []byte, err error) {
	key := []byte(keptPrefix + name)
	err = db.view(ctx, func(tx *bbolt.Tx) error {
		v := tx.Bucket([]byte(bucketMeta)).Get(key)
		if v == nil {
			return nil
		}
		v, err := unseal(key, v, 1)
		value = append([]byte{}, v...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return value, nil
}
