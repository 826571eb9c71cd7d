package state

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/tail"
)

// load brings the schema up to date, and reads what is kept in memory.
func (db *DB) load(b *bbolt.DB) error {
	err := b.Update(func(tx *bbolt.Tx) error {
		changed, err := migrate(tx, db.opt.migrations)
		if err == nil && !changed {
			err = errNothing
		}
		return err
	})
	if err != nil && !errors.Is(err, errNothing) {
		return err
	}
	if err := db.reindex(b); err != nil {
		return err
	}
	return b.View(func(tx *bbolt.Tx) error {
		v, err := unseal([]byte(keyEpoch), tx.Bucket([]byte(bucketMeta)).Get([]byte(keyEpoch)), 1)
		if err != nil {
			return fmt.Errorf("read epoch: %w", err)
		}
		db.epoch = string(v)
		giveBack(tx)
		if tx.Size() > bigFile {
			debug.FreeOSMemory() // bbolt's search for free pages needs a map of all pages
		}
		return nil
	})
}

// reindex reads the index from the file. Every row but its frame is checked on the way.
func (db *DB) reindex(b *bbolt.DB) error {
	x := newIndex()
	err := b.View(func(tx *bbolt.Tx) error {
		for _, name := range bucketNames() {
			if tx.Bucket([]byte(name)) == nil {
				return fmt.Errorf("%w: bucket %s is missing", ErrCorrupt, name)
			}
		}
		for _, read := range []func(*index, *bbolt.Tx) error{readDests, readFiles, readOutbox, readDead, readUnderstood, readDocuments, readPending, readBudgets} {
			if err := read(&x, tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read index: %w", err)
	}
	old := &db.index
	old.mu.Lock()
	defer old.mu.Unlock()
	old.stale = false
	old.names, old.urls, old.queues, old.files = x.names, x.urls, x.queues, x.files
	old.total, old.dead, old.deadSize, old.withheld = x.total, x.dead, x.deadSize, x.withheld
	old.understood, old.pending, old.budgets = x.understood, x.pending, x.budgets
	return nil
}

func readDests(x *index, tx *bbolt.Tx) error {
	return tx.Bucket([]byte(bucketDests)).ForEach(func(k, v []byte) error {
		id, r, err := decodeDestRow(k, v)
		if err != nil {
			return err
		}
		x.names[r.URL], x.urls[id] = id, r.URL
		return nil
	})
}

func readFiles(x *index, tx *bbolt.Tx) error {
	interned := map[string]string{}
	return tx.Bucket([]byte(bucketFiles)).ForEach(func(k, v []byte) error {
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
func readOutbox(x *index, tx *bbolt.Tx) error {
	err := tx.Bucket([]byte(bucketOutbox)).ForEach(func(k, v []byte) error {
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

func readDead(x *index, tx *bbolt.Tx) error {
	return tx.Bucket([]byte(bucketDead)).ForEach(func(k, v []byte) error {
		if _, err := decodeDeadRow(k, v); err != nil {
			return err
		}
		x.dead++
		x.deadSize += int64(len(k) + len(v))
		return nil
	})
}
