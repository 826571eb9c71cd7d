package state

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/ccship/ccship/tail"
)

// Usage counts what is in the outbox and among the dead letters. It comes from memory.
type Usage struct {
	Waiting
	Stored              int64              // bytes of outbox and dead letters, as the cap counts them
	Cap                 int64              // bytes
	Dead                int64              // dead letters
	Withheld            int64              // entries that plain servers did not get
	Malformed, Oversize int64              // lines of the files on disk that are no JSON, and that are longer than the cap
	ByDest              map[string]Waiting // by normalised URL; those with rows waiting
	// Full is why nothing more is taken in: "cap" or "disk"; "" while there is capacity.
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

// Usage is cheap enough to be called for every status request.
func (o *Outbox) Usage() Usage {
	u := Usage{Cap: o.db.limits().Cap, ByDest: map[string]Waiting{}, Full: o.db.capacityFull()}
	x := &o.db.index
	x.mu.Lock()
	defer x.mu.Unlock()
	u.Waiting = x.total.waiting(0)
	u.Stored = x.total.stored + x.deadSize
	u.Dead, u.Withheld, u.Malformed, u.Oversize = x.dead, x.odd.withheld, x.odd.malformed, x.odd.oversize
	for id, q := range x.queues {
		if q.rows == 0 {
			continue
		}
		w := q.waiting(q.oldest[0].firstAt)
		url := x.urls[id&^blobQueue]
		u.ByDest[url] = u.ByDest[url].plus(w)
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

// plus adds the rows of another queue.
func (w Waiting) plus(o Waiting) Waiting {
	if w.Oldest.IsZero() || !o.Oldest.IsZero() && o.Oldest.Before(w.Oldest) {
		w.Oldest = o.Oldest
	}
	w.Batches, w.Entries, w.Raw, w.Bytes = w.Batches+o.Batches, w.Entries+o.Entries, w.Raw+o.Raw, w.Bytes+o.Bytes
	return w
}

// FirstSeq returns the lowest seq in the outbox. It leaves out the destinations for which skip, if not nil, returns
// true. Without rows the result is higher than every seq ever used. skip must not call the state.
func (o *Outbox) FirstSeq(skip func(dest string) bool) uint64 {
	x := &o.db.index
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

// LastSeq returns the highest seq in the outbox, 0 when it is empty.
func (o *Outbox) LastSeq() (last uint64) {
	x := &o.db.index
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, q := range x.queues {
		if e := q.newest.Front(); e != nil {
			last = max(last, e.Value.(*waiting).last)
		}
	}
	return last
}

// Requeued returns how many dead letters were queued again since the state was opened. Their rows are behind all
// others, also behind those that were the last when the caller began to wait.
func (o *Outbox) Requeued() uint64 {
	x := &o.db.index
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.requeued
}

// drained reports that the outbox is empty.
func (x *index) drained() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.total.rows == 0
}

// Destinations returns, sorted, the URLs of those with rows or files.
func (o *Outbox) Destinations() []string {
	x := &o.db.index
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

// KnownDestinations returns, sorted, the URL of every destination there ever was.
func (o *Outbox) KnownDestinations() []string {
	x := &o.db.index
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Sorted(maps.Values(x.urls))
}

// QueuedEntries counts a file's entries in the outbox, for all destinations.
func (o *Outbox) QueuedEntries(id tail.FileID) (entries int64) {
	x := &o.db.index
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, q := range x.queues {
		if w := q.streams[uint64(id)]; w != nil {
			entries += w.entries
		}
	}
	return entries
}
