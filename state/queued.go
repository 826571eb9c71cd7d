package state

import (
	"cmp"
	"slices"

	"github.com/ccship/ccship/tail"
)

// Queued is the rows of one file that wait for one destination.
type Queued struct {
	Dest string
	File tail.FileID
	// Blobs is true for the blobs of the file's session; false for its lines and what was derived from them.
	Blobs bool
	Waiting
}

// Queued lists what waits, the longest waiting first. It comes from memory.
func (o *Outbox) Queued() []Queued {
	x := &o.db.index
	x.mu.Lock()
	type item struct {
		Queued
		first uint64
	}
	var all []item
	for dest, q := range x.queues {
		for id, w := range q.streams {
			all = append(all, item{Queued{
				Dest: x.urls[dest&^blobQueue], File: tail.FileID(id), Blobs: dest&blobQueue != 0, Waiting: w.waiting(w.firstAt),
			}, w.first})
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
