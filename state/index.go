package state

import (
	"bytes"
	"cmp"
	"container/list"
	"slices"
	"sync"
	"time"
)

// index is what is kept in memory of the outbox: sums per destination and stream, no rows. It is read from the file at
// Open and follows every commit that the disk has. It can always be made again from the file, and is when a commit
// failed half-way; tests compare the two after every step.
type index struct {
	mu       sync.Mutex // guards all below; a leaf: nothing else is locked or called under it, except Pick's skip
	names    map[string]uint32
	urls     map[uint32]string
	queues   map[uint32]*destQueue
	files    map[uint32]int64 // per destination
	total    sums
	dead     int64
	deadSize int64
	odd      oddSums
	// lastTaken is when rows last left the outbox; not in the file.
	lastTaken time.Time
	requeued  uint64 // dead letters that were queued again since Open
}

// sums are counts of rows.
type sums struct{ rows, entries, raw, stored int64 }

func (s *sums) add(m *rowMeta, sign int64) {
	s.rows += sign
	s.entries += sign * m.entries
	s.raw += sign * m.raw
	s.stored += sign * m.stored
}

// destQueue is the streams of one destination that have rows, in both orders that Pick offers.
type destQueue struct {
	sums
	streams map[uint64]*waiting
	newest  *list.List // of *waiting; the one written last is in front
	oldest  []*waiting // by first: the one that waits longest is in front
}

// waiting is one stream's rows for one destination.
type waiting struct {
	sums
	stream      uint64
	first, last uint64 // seq
	firstAt     int64  // Unix seconds when the first was queued
	element     *list.Element
}

// streamKey names a stream of a destination.
type streamKey struct {
	dest   uint32
	stream uint64
}

// delta is what one transaction changes.
type delta struct {
	added, removed []rowMeta
	ends           map[streamKey]ends // of the streams in removed, after it
	names          map[string]uint32  // new destinations
	files          map[uint32]int64
	dead           int64
	deadBytes      int64
	odd            oddSums
	tookRows       bool
	requeued       uint64
}

func (d *delta) countFile(dest uint32, n int64) {
	if d.files == nil {
		d.files = map[uint32]int64{}
	}
	d.files[dest] += n
}

// bytes returns the size of all rows that came or went.
func (d *delta) bytes() (n int64) {
	for i := range d.added {
		n += d.added[i].stored
	}
	for i := range d.removed {
		n += d.removed[i].stored
	}
	return n
}

func (d *delta) remove(m rowMeta) {
	d.removed = append(d.removed, m)
	if d.ends == nil {
		d.ends = map[streamKey]ends{}
	}
	d.ends[streamKey{m.dest, m.stream}] = ends{}
}

func (d *delta) countDead(k, v []byte, sign int64) {
	d.dead += sign
	d.deadBytes += sign * int64(len(k)+len(v))
}

func newIndex() index {
	return index{
		names: map[string]uint32{}, urls: map[uint32]string{}, queues: map[uint32]*destQueue{}, files: map[uint32]int64{},
	}
}

// apply makes the changes of a transaction visible that the disk has.
func (x *index) apply(d *delta) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for url, id := range d.names {
		x.names[url], x.urls[id] = id, url
	}
	for dest, n := range d.files {
		x.files[dest] += n
	}
	for i := range d.added {
		x.add(&d.added[i])
	}
	for i := range d.removed {
		x.remove(&d.removed[i])
	}
	for k, e := range d.ends {
		x.setEnds(k, e)
	}
	x.dead += d.dead
	x.deadSize += d.deadBytes
	x.odd.withheld += d.odd.withheld
	x.odd.malformed += d.odd.malformed
	x.odd.oversize += d.odd.oversize
	x.requeued += d.requeued
	if d.tookRows {
		x.lastTaken = time.Now()
	}
}

// add counts a row with a seq above all others of its stream.
func (x *index) add(m *rowMeta) {
	q := x.queues[m.dest]
	if q == nil {
		q = &destQueue{streams: map[uint64]*waiting{}, newest: list.New()}
		x.queues[m.dest] = q
	}
	w := q.streams[m.stream]
	if w == nil {
		w = &waiting{stream: m.stream, first: m.seq, firstAt: m.at}
		q.streams[m.stream] = w
		w.element = q.newest.PushFront(w)
		q.insert(w)
	}
	w.last = m.seq
	q.newest.MoveToFront(w.element)
	w.add(m, 1)
	q.add(m, 1)
	x.total.add(m, 1)
}

func (x *index) remove(m *rowMeta) {
	q := x.queues[m.dest]
	w := q.streams[m.stream]
	w.sums.add(m, -1)
	q.sums.add(m, -1)
	x.total.add(m, -1)
	if w.rows == 0 {
		delete(q.streams, m.stream)
		q.newest.Remove(w.element)
		q.takeOut(w)
	}
}

func (x *index) setEnds(k streamKey, e ends) {
	q := x.queues[k.dest]
	w := q.streams[k.stream]
	if w == nil || e.first == 0 {
		return
	}
	q.takeOut(w)
	w.first, w.firstAt, w.last = e.first, e.firstAt, e.last
	q.insert(w)
}

// place returns where a stream with a first seq is in oldest, or belongs.
func (q *destQueue) place(first uint64) int {
	i, _ := slices.BinarySearchFunc(q.oldest, first, func(w *waiting, seq uint64) int { return cmp.Compare(w.first, seq) })
	return i
}

func (q *destQueue) insert(w *waiting) { q.oldest = slices.Insert(q.oldest, q.place(w.first), w) }

func (q *destQueue) takeOut(w *waiting) {
	i := q.place(w.first)
	q.oldest = slices.Delete(q.oldest, i, i+1)
}

// lastSeq returns the seq of a stream's last row; 0: it has none.
func (x *index) lastSeq(k streamKey) uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	if q := x.queues[k.dest]; q != nil && q.streams[k.stream] != nil {
		return q.streams[k.stream].last
	}
	return 0
}

func (x *index) destID(url string) (uint32, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	id, ok := x.names[url]
	return id, ok
}

func (x *index) destURL(id uint32) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.urls[id]
}

// arrived returns the destinations that got rows.
func (d *delta) arrived(x *index) []string {
	var ids []uint32
	for i := range d.added {
		if dest := d.added[i].dest &^ blobQueue; !slices.Contains(ids, dest) {
			ids = append(ids, dest)
		}
	}
	urls := make([]string, len(ids))
	for i, id := range ids {
		urls[i] = x.destURL(id)
	}
	return urls
}

// ends are the first and the last row of a stream; zero: there is none.
type ends struct {
	first, last uint64
	firstAt     int64
}

// findEnds looks up what are now the first and the last rows of the streams that rows were removed from. It runs once
// at the end of a transaction, however many rows of a stream it removed.
func (t *Tx) findEnds() error {
	for k := range t.delta.ends {
		prefix := streamPrefix(k.dest, k.stream)
		c := t.outbox.Cursor()
		key, v := c.Seek(prefix)
		if !bytes.HasPrefix(key, prefix) {
			continue
		}
		first, err := readRowMeta(key, v)
		if err != nil {
			return err
		}
		// Going back is not safe: bbolt's Prev stops at pages that deletions of this transaction emptied. It is not
		// needed either, because rows mostly leave from the front.
		last := t.lastSeq(k)
		if t.outbox.Get(rowKey(k.dest, k.stream, last)) == nil {
			for ; bytes.HasPrefix(key, prefix); key, _ = c.Next() {
				_, _, last, _ = splitRowKey(key)
			}
		}
		t.delta.ends[k] = ends{first: first.seq, last: last, firstAt: first.at}
	}
	return nil
}

// lastSeq returns the highest seq that a stream has had since its rows were last all gone.
func (t *Tx) lastSeq(k streamKey) uint64 {
	for i := len(t.delta.added) - 1; i >= 0; i-- {
		if m := &t.delta.added[i]; m.dest == k.dest && m.stream == k.stream {
			return m.seq
		}
	}
	return t.known.lastSeq(k)
}
