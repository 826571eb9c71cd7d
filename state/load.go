package state

import (
	"slices"

	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// Load implements kv.Memory: it reads the index. Every row but its frame is checked on the way.
func (m *memory) Load(tx *kv.Snapshot) error {
	x := newIndex()
	for _, read := range []func(*index, *kv.Snapshot) error{
		readDests, readFiles, readOutbox, readDead, readUnderstood, readDocuments, readPending, readBudgets,
	} {
		if err := read(&x, tx); err != nil {
			return err
		}
	}
	old := &m.db.index
	old.mu.Lock()
	defer old.mu.Unlock()
	old.names, old.urls, old.queues, old.files = x.names, x.urls, x.queues, x.files
	old.total, old.dead, old.deadSize, old.withheld = x.total, x.dead, x.deadSize, x.withheld
	old.understood, old.pending, old.budgets = x.understood, x.pending, x.budgets
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
	interned := map[string]string{}
	return tx.Bucket(bucketFiles).ForEach(func(k, v []byte) error {
		id, err := splitFileKey(k)
		if err != nil {
			return err
		}
		r, err := decodeFileRow(tail.FileID(id), v, interned)
		if err != nil {
			return err
		}
		x.files[r.dest]++
		x.withheld += r.facts.Withheld
		return nil
	})
}

// readOutbox counts the rows. They come by stream; the lists are in the order of the last writes, so that is
// restored at the end.
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
