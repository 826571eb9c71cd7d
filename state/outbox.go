package state

// Outbox is the batches that wait for a server, of all destinations, and what each server taught. What is asked often
// is answered from memory: an idle daemon must not read the disk, and one with a million rows must not walk them.
type Outbox struct{ db *DB }

// Pick implements outbox.Queue, from memory alone. skip must not call the state.
func (o *Outbox) Pick(dest string, oldest bool, skip func(stream, last uint64) bool) (stream uint64, ok bool) {
	if skip == nil {
		skip = func(uint64, uint64) bool { return false }
	}
	x := &o.db.index
	x.mu.Lock()
	defer x.mu.Unlock()
	q := x.queues[x.names[dest]]
	if q == nil {
		return 0, false
	}
	if oldest {
		return q.pickOldest(skip)
	}
	for e := q.newest.Front(); e != nil; e = e.Next() {
		if w := e.Value.(*waiting); !skip(w.stream, w.last) {
			return w.stream, true
		}
	}
	return 0, false
}

// PickBlobs implements outbox.Queue, as Pick does.
func (o *Outbox) PickBlobs(dest string, skip func(stream, last uint64) bool) (stream uint64, ok bool) {
	x := &o.db.index
	x.mu.Lock()
	defer x.mu.Unlock()
	id, known := x.names[dest]
	if q := x.queues[queueOf(id, true)]; known && q != nil {
		return q.pickOldest(skip)
	}
	return 0, false
}

// pickOldest returns the stream that waits longest and is not skipped.
func (q *destQueue) pickOldest(skip func(stream, last uint64) bool) (stream uint64, ok bool) {
	for _, w := range q.oldest {
		if !skip(w.stream, w.last) {
			return w.stream, true
		}
	}
	return 0, false
}
