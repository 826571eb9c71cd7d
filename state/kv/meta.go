package kv

import (
	"bytes"
	"context"
	"fmt"
)

// PutMeta durably stores a few bytes for the owner under a name; nil removes them. It writes nothing if the value is
// the same. Use it for values that are read once at the start and seldom change; use a bucket for many entries.
func (db *DB) PutMeta(ctx context.Context, name string, value []byte) error {
	key := []byte(prefixMeta + name)
	err := db.Update(ctx, int64(len(value)), func(t *Tx) error {
		meta := t.Bucket(BucketMeta)
		var want []byte
		if value != nil {
			want = Seal(key, append(NewSealed(1, len(value)), value...))
		}
		old := meta.Get(key)
		switch {
		case bytes.Equal(old, want) && (old == nil) == (want == nil):
			return nil
		case want == nil:
			return t.Delete("put meta", meta, key)
		}
		return t.Put("put meta", meta, key, want)
	})
	if err != nil {
		return fmt.Errorf("store %s: %w", name, err)
	}
	return nil
}

// Meta returns what PutMeta stored under a name; nil: nothing.
func (db *DB) Meta(ctx context.Context, name string) (value []byte, err error) {
	key := []byte(prefixMeta + name)
	err = db.View(ctx, func(tx *Snapshot) error {
		v := tx.Bucket(BucketMeta).Get(key)
		if v == nil {
			return nil
		}
		v, err := Unseal(key, v, 1)
		value = append([]byte{}, v...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return value, nil
}
