package state

import (
	"container/heap"
)

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

// pickOldest walks the heap from its top: the children of a stream that is skipped become candidates. Sorting all
// streams instead would cost too much when ten thousand wait and the first one is free.
func (q *destQueue) pickOldest(skip func(stream, last uint64) bool) (stream uint64, ok bool) {
	c := candidates{heap: q.oldest}
	c.offer(0)
	for len(c.places) > 0 {
		place := heap.Pop(&c).(int)
		if w := q.oldest[place]; !skip(w.stream, w.last) {
			return w.stream, true
		}
		c.offer(2*place + 1)
		c.offer(2*place + 2)
	}
	return 0, false
}

// candidates is a heap of places in a headHeap.
type candidates struct {
	heap   headHeap
	places []int
}

func (c *candidates) offer(place int) {
	if place < len(c.heap) {
		heap.Push(c, place)
	}
}

func (c *candidates) Len() int           { return len(c.places) }
func (c *candidates) Less(i, j int) bool { return c.heap.Less(c.places[i], c.places[j]) }
func (c *candidates) Swap(i, j int)      { c.places[i], c.places[j] = c.places[j], c.places[i] }
func (c *candidates) Push(v any)         { c.places = append(c.places, v.(int)) }
func (c *candidates) Pop() any {
	last := c.places[len(c.places)-1]
	c.places = c.places[:len(c.places)-1]
	return last
}
