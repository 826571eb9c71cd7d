package state

import (
	"slices"

	"github.com/ccship/ccship/state/kv"
)

// Load implements kv.Memory: it reads the index from the file. It checks the sum of every row on the way, except for
// the frames of batches: those may be gigabytes, and Peek checks them.
func (m *memory) Load(tx *kv.Snapshot) error {
	x := newIndex()
	for _, read := range []func(*index, *kv.Snapshot) error{
		readDests, readFiles, readOutbox, readDead,
	} {
		if err := read(&x, tx); err != nil {
			return err
		}
	}
	old := &m.db.index
	old.mu.Lock()
	old.names, old.urls, old.queues, old.files = x.names, x.urls, x.queues, x.files
	old.total, old.dead, old.deadSize, old.odd = x.total, x.dead, x.deadSize, x.odd
	old.mu.Unlock()
	if m.db.Listener != nil { // not Open: the rows of a commit that failed half-way may be there, and nobody heard of them
		for _, dest := range m.db.Outbox.Destinations() {
			m.db.Listener.RowsQueued(dest)
		}
	}
	return nil
}

func readDests(x *index, tx *kv.Snapshot) error {
	return tx.Bucket(bucketDests).ForEach(func(k, v []byte) error {
		id, r, err := decodeDestRow(k, v)
		if err != nil {
			return err
		}
		x.names[r.URL], x.urls[id] = id, r.URL
		return nil
	})
}

func readFiles(x *index, tx *kv.Snapshot) error {
	return eachFileRow(tx, func(r *fileRow) error {
		x.files[r.dest]++
		x.odd.add(r, 1)
		return nil
	})
}

// readOutbox counts the rows. The file has them by stream, but the lists are in the order of the last writes: that
// order is restored at the end.
func readOutbox(x *index, tx *kv.Snapshot) error {
	err := tx.Bucket(bucketOutbox).ForEach(func(k, v []byte) error {
		m, err := readRowMeta(k, v)
		if err != nil {
			return err
		}
		x.add(&m)
		return nil
	})
	if err != nil {
		return err
	}
	for _, q := range x.queues {
		byLast := make([]*waiting, 0, len(q.streams))
		for _, w := range q.streams {
			byLast = append(byLast, w)
		}
		slices.SortFunc(byLast, func(a, b *waiting) int { return int(int64(a.last - b.last)) })
		for _, w := range byLast {
			q.newest.MoveToFront(w.element)
		}
	}
	return nil
}

func readDead(x *index, tx *kv.Snapshot) error {
	return tx.Bucket(bucketDead).ForEach(func(k, v []byte) error {
		if _, err := decodeDeadRow(k, v); err != nil {
			return err
		}
		x.dead++
		x.deadSize += int64(len(k) + len(v))
		return nil
	})
}
