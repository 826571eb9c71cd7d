// Package migration turns state files of earlier schema versions into the newest.
package migration

import (
	"bytes"
	"fmt"

	"github.com/ccship/ccship/state/kv"
)

// DestinationOf reads the number of the destination from a row of the bucket files. These rows carry a version of their
// own, so the code of the day reads them.
type DestinationOf func(key, value []byte) (uint32, error)

// Steps are the steps from version 1 on: the first turns version 1 into version 2. They name buckets and rows as they
// were then, whatever they are called today. Each runs in the transaction that stores the new version number, so that a
// crash leaves the old file or the new one, and no epoch changes: nothing is sent again.
func Steps(fileRow DestinationOf) []kv.Migration {
	normalize := func(tx *kv.RawTx) error { return normalizeDestinations(tx, fileRow) }
	return []kv.Migration{addBuckets, renameBuckets, normalize, sumRows}
}

// sumRows is the step from schema 4 to 5: the package kv adds a sum of all rows to every file that it migrates. An
// older ccship would not keep it.
func sumRows(*kv.RawTx) error { return nil }

// addBuckets is the step from schema 1 to 2: it adds the buckets of what is kept of sessions, all empty.
func addBuckets(tx *kv.RawTx) error {
	for _, name := range []string{"sessions", "messages", "checkpoints", "notices", "documents", "blobs"} {
		if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return fmt.Errorf("make bucket %s: %w", name, err)
		}
	}
	return nil
}

// renameBuckets is the step from schema 2 to 3: buckets get the names that their rows have in the code, and the
// generations that ended leave meta for a bucket of their own.
func renameBuckets(tx *kv.RawTx) error {
	for _, names := range [][2]string{
		{"dests", "destinations"}, {"prefixes", "marks"}, {"dead", "dead_letters"},
		{"sessions", "projections"}, {"messages", "folds"}, {"blobs", "attachments"},
	} {
		if err := renameBucket(tx, names[0], names[1]); err != nil {
			return fmt.Errorf("rename bucket %s: %w", names[0], err)
		}
	}
	generations, err := tx.CreateBucketIfNotExists([]byte("generations"))
	if err != nil {
		return fmt.Errorf("make bucket generations: %w", err)
	}
	meta := tx.Bucket([]byte("meta"))
	if err := moveRows(meta, generations, "past/", ""); err != nil {
		return fmt.Errorf("move generations: %w", err)
	}
	if err := moveRows(meta, meta, "kept/", "persisted/"); err != nil {
		return fmt.Errorf("rename persisted values: %w", err)
	}
	return nil
}

// renameBucket copies a bucket, because bbolt cannot rename one. It copies the sequence too: a number that was given
// once must not be given again.
func renameBucket(tx *kv.RawTx, from, to string) error {
	old := tx.Bucket([]byte(from))
	if old == nil {
		return fmt.Errorf("%w: bucket is missing", kv.ErrCorrupt)
	}
	fresh, err := tx.CreateBucket([]byte(to))
	if err != nil {
		return err
	}
	if err := fresh.SetSequence(old.Sequence()); err != nil {
		return err
	}
	fresh.FillPercent = 0.9 // the rows come in order
	err = old.ForEach(func(k, v []byte) error { return fresh.Put(k, bytes.Clone(v)) })
	if err != nil {
		return err
	}
	return tx.DeleteBucket([]byte(from))
}

// moveRows gives the sealed rows whose keys begin with prefix another prefix, in the same bucket or another. It seals
// them again, because the checksum covers the key.
func moveRows(from, to *kv.Bucket, prefix, want string) error {
	for _, k := range kv.Keys(from, []byte(prefix)) {
		v, err := kv.Unseal(k, from.Get(k), 1)
		if err != nil {
			return err
		}
		key := append([]byte(want), k[len(prefix):]...)
		if err := to.Put(key, kv.Seal(key, append(kv.NewSealed(1, len(v)), v...))); err != nil {
			return err
		}
		if err := from.Delete(k); err != nil {
			return err
		}
	}
	return nil
}
