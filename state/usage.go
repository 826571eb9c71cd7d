package state

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/ccship/ccship/tail"
)

// Usage counts what is in the outbox and among the dead letters, without a look at the disk.
type Usage struct {
	Waiting
	Stored   int64              // bytes of outbox and dead letters, as the cap counts them
	Cap      int64              // bytes
	Dead     int64              // dead letters
	Withheld int64              // entries that plain servers did not get
	ByDest   map[string]Waiting // by normalised URL; those with rows waiting
	// Full says why there is no room for anything more: "cap" or "disk"; "" while there is.
	Full string
}

// Waiting counts rows of the outbox.
type Waiting struct {
	Batches int64
	Entries int64
	Raw     int64     // bytes of the entries, uncompressed
	Bytes   int64     // bytes as stored
	Oldest  time.Time // when the first of them was queued; zero when there is none
}

// Usage is cheap enough for every status.
func (db *DB) Usage() Usage {
	u := Usage{Cap: db.limits().Cap, ByDest: map[string]Waiting{}, Full: db.roomFull()}
	x := &db.index
	x.mu.Lock()
	defer x.mu.Unlock()
	u.Waiting = x.total.waiting(0)
	u.Stored = x.total.stored + x.deadSize
	u.Dead, u.Withheld = x.dead, x.withheld
	for id, q := range x.queues {
		if q.rows == 0 {
			continue
		}
		w := q.waiting(q.oldest[0].firstAt)
		u.ByDest[x.urls[id&^blobQueue]] = u.ByDest[x.urls[id&^blobQueue]].plus(w)
		if u.Oldest.IsZero() || w.Oldest.Before(u.Oldest) {
			u.Oldest = w.Oldest
		}
	}
	return u
}

func (s *sums) waiting(oldest int64) Waiting {
	w := Waiting{Batches: s.rows, Entries: s.entries, Raw: s.raw, Bytes: s.stored}
	if oldest != 0 {
		w.Oldest = time.Unix(oldest, 0)
	}
	return w
}

// plus adds what waits in another queue.
func (w Waiting) plus(o Waiting) Waiting {
	if w.Oldest.IsZero() || !o.Oldest.IsZero() && o.Oldest.Before(w.Oldest) {
		w.Oldest = o.Oldest
	}
	w.Batches, w.Entries, w.Raw, w.Bytes = w.Batches+o.Batches, w.Entries+o.Entries, w.Raw+o.Raw, w.Bytes+o.Bytes
	return w
}

// FirstSeq is the lowest seq in the outbox, but for the destinations that skip names, if it is not nil; above every seq
// there ever was when there are none. skip must not call the state.
func (db *DB) FirstSeq(skip func(dest string) bool) uint64 {
	x := &db.index
	x.mu.Lock()
	defer x.mu.Unlock()
	first := uint64(math.MaxUint64)
	for id, q := range x.queues {
		if len(q.oldest) > 0 && (skip == nil || !skip(x.urls[id&^blobQueue])) {
			first = min(first, q.oldest[0].first)
		}
	}
	return first
}

// LastSeq is the highest seq in the outbox, 0 when it is empty.
func (db *DB) LastSeq() (last uint64) {
	x := &db.index
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, q := range x.queues {
		if e := q.newest.Front(); e != nil {
			last = max(last, e.Value.(*waiting).last)
		}
	}
	return last
}

// drained says that nothing is in the outbox.
func (db *DB) drained() bool {
	x := &db.index
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.total.rows == 0
}

// Destinations names, in order, those with rows waiting or with files.
func (db *DB) Destinations() []string {
	x := &db.index
	x.mu.Lock()
	defer x.mu.Unlock()
	var urls []string
	for id, url := range x.urls {
		q, blobs := x.queues[id], x.queues[queueOf(id, true)]
		if x.files[id] > 0 || q != nil && q.rows > 0 || blobs != nil && blobs.rows > 0 {
			urls = append(urls, url)
		}
	}
	slices.Sort(urls)
	return urls
}

// KnownDestinations names, in order, every destination there ever was.
func (db *DB) KnownDestinations() []string {
	x := &db.index
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Sorted(maps.Values(x.urls))
}

// Pending counts a file's entries in the outbox, for all destinations.
func (db *DB) Pending(id tail.FileID) (entries int64) {
	x := &db.index
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, q := range x.queues {
		if w := q.streams[uint64(id)]; w != nil {
			entries += w.entries
		}
	}
	return entries
}
