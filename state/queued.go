package state

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ccship/ccship/state/kv"

	"github.com/ccship/ccship/tail"
)

// Queued is the rows of one file that wait for one destination.
type Queued struct {
	Dest string
	File tail.FileID
	// Blobs says that these are the blobs of the file's session; else they are its lines and what was derived of them.
	Blobs bool
	Waiting
}

// Queued lists what waits, that which waits longest first. It reads no rows.
func (db *DB) Queued() []Queued {
	x := &db.index
	x.mu.Lock()
	type item struct {
		Queued
		first uint64
	}
	var all []item
	for dest, q := range x.queues {
		for id, w := range q.streams {
			all = append(all, item{Queued{Dest: x.urls[dest&^blobQueue], File: tail.FileID(id), Blobs: dest&blobQueue != 0, Waiting: w.waiting(w.firstAt)}, w.first})
		}
	}
	x.mu.Unlock()
	slices.SortFunc(all, func(a, b item) int { return cmp.Compare(a.first, b.first) })
	out := make([]Queued, len(all))
	for i := range all {
		out[i] = all[i].Queued
	}
	return out
}

// FactsOf answers the facts of some files; those that are not known are left out.
func (db *DB) FactsOf(ctx context.Context, ids []tail.FileID) (map[tail.FileID]Facts, error) {
	some := make(map[tail.FileID]Facts, len(ids))
	err := db.view(ctx, func(tx *kv.Snapshot) error {
		files := tx.Bucket(bucketFiles)
		for _, id := range ids {
			v := files.Get(fileKey(id))
			if v == nil {
				continue
			}
			r, err := decodeFileRow(id, v, nil)
			if err != nil {
				return err
			}
			r.facts.Dest = db.index.destURL(r.dest)
			some[id] = r.facts
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read facts: %w", err)
	}
	return some, nil
}
