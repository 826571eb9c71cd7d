package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/tail"
)

// txn is a write transaction under way, and what it will change in memory once it is durable.
type txn struct {
	tx    *bbolt.Tx
	fault func(step string) error
	now   int64 // Unix seconds
	known *index
	dirty bool // something was written
	delta delta

	dests, files, prefixes, outbox, dead *bbolt.Bucket
	sessions, messages                   *bbolt.Bucket
	understoodCap                        int64
}

// errNothing rolls back a transaction that has nothing to write: even an empty commit is two fsyncs.
var errNothing = errors.New("nothing to commit")

// runGroup runs requests in one transaction. The caller holds group.write.
func (db *DB) runGroup(group []*request) error {
	var d delta
	err := db.update(func(tx *bbolt.Tx) error {
		t := db.begin(tx)
		for _, r := range group {
			if err := r.apply(t); err != nil {
				return &applyError{err}
			}
		}
		if !t.dirty {
			return errNothing
		}
		if err := t.findEnds(); err != nil {
			return err
		}
		if err := db.fault("commit"); err != nil {
			return &applyError{err}
		}
		d = t.delta
		return nil
	})
	if errors.Is(err, errNothing) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("commit state: %w", err)
	}
	db.index.apply(&d)
	db.ring()
	if db.touch(d.bytes()) {
		db.givePagesBack()
	}
	if db.Notify != nil {
		for _, dest := range d.arrived(&db.index) {
			db.Notify(dest)
		}
	}
	for _, m := range d.missed {
		if db.Missed != nil {
			db.Missed(m)
		}
	}
	if len(d.removed) > 0 || d.deadBytes < 0 {
		db.roomCheck()
	}
	return nil
}

func (db *DB) begin(tx *bbolt.Tx) *txn {
	t := &txn{tx: tx, fault: db.fault, now: time.Now().Unix(), known: &db.index}
	t.dests, t.files = tx.Bucket([]byte(bucketDests)), tx.Bucket([]byte(bucketFiles))
	t.prefixes, t.dead = tx.Bucket([]byte(bucketPrefixes)), tx.Bucket([]byte(bucketDead))
	t.outbox = tx.Bucket([]byte(bucketOutbox))
	t.sessions, t.messages = tx.Bucket([]byte(bucketSessions)), tx.Bucket([]byte(bucketMessages))
	t.understoodCap = db.opt.understoodCap
	t.outbox.FillPercent = 0.9 // rows of a stream come in ascending order
	return t
}

// update runs a write transaction. The caller holds group.write. When it fails in the commit itself, it can't be
// known whether the disk has it (a failed fsync leaves the new root readable), so the memory is read anew.
func (db *DB) update(fn func(*bbolt.Tx) error) error {
	b, release, err := db.acquire()
	if err != nil {
		return err
	}
	defer release()
	if db.index.stale {
		if err := db.reindex(b); err != nil {
			return err
		}
	}
	done := false
	err = db.guard(func() error {
		return b.Update(func(tx *bbolt.Tx) error {
			err := fn(tx)
			done = err == nil
			return err
		})
	})
	if err == nil {
		s := b.Stats()
		db.empty.Store(int64(s.FreePageN+s.PendingPageN) * int64(b.Info().PageSize))
	}
	if err != nil && done {
		db.index.stale = true
		if e := db.reindex(b); e != nil {
			db.log.Warn("reading the state anew failed", "path", db.opt.Path, "error", e)
		}
	}
	return err
}

// view runs a read transaction. What fn reads is to be copied before it leaves.
func (db *DB) view(ctx context.Context, fn func(*bbolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b, release, err := db.acquire()
	if err != nil {
		return err
	}
	defer release()
	defer db.ring()
	return db.guard(func() error { return b.View(fn) })
}

// acquire answers the open file, which stays until release is called. It opens the file again when a compaction was
// interrupted between closing and reopening it.
func (db *DB) acquire() (b *bbolt.DB, release func(), err error) {
	for {
		db.handle.RLock()
		if db.closed {
			db.handle.RUnlock()
			return nil, nil, ErrClosed
		}
		if db.bolt != nil {
			return db.bolt, db.handle.RUnlock, nil
		}
		db.handle.RUnlock()
		db.handle.Lock()
		if db.bolt == nil && !db.closed {
			err = db.reopen()
		}
		db.handle.Unlock()
		if err != nil {
			return nil, nil, fmt.Errorf("reopen state: %w", err)
		}
	}
}

// guard turns the panics of a damaged file into ErrCorrupt: bbolt asserts what it reads, and a page that the disk
// can't deliver arrives as a memory fault. Programming errors go on as panics.
func (db *DB) guard(fn func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		p := recover()
		if p == nil {
			if errors.Is(err, ErrCorrupt) {
				db.markDamaged(err)
			}
			return
		}
		if e, ok := p.(runtime.Error); ok {
			if _, fault := e.(interface{ Addr() uintptr }); !fault {
				panic(p)
			}
		}
		err = fmt.Errorf("%w: %v", ErrCorrupt, p)
		db.markDamaged(err)
	}()
	return fn()
}

// file reads a file's row.
func (t *txn) file(id tail.FileID) (r fileRow, found bool, err error) {
	v := t.files.Get(fileKey(id))
	if v == nil {
		return fileRow{}, false, nil
	}
	r, err = decodeFileRow(id, v, nil)
	return r, err == nil, err
}

// putFile stores a file's row in place of old, whose place may have been empty.
func (t *txn) putFile(r, old fileRow, found bool) error {
	if err := t.files.Put(fileKey(r.tracked.File.ID), r.encode()); err != nil {
		return fmt.Errorf("put file: %w", err)
	}
	t.dirty = true
	t.delta.withheld += r.facts.Withheld - old.facts.Withheld
	if found {
		t.delta.countFile(old.dest, -1)
	}
	t.delta.countFile(r.dest, 1)
	return nil
}

// destID answers the number of a destination, and gives it one when it has none. "" is 0.
func (t *txn) destID(url string) (uint32, error) {
	if url == "" {
		return 0, nil
	}
	if id, ok := t.delta.names[url]; ok {
		return id, nil
	}
	if id, ok := t.known.destID(url); ok {
		return id, nil
	}
	if err := t.fault("put destination"); err != nil {
		return 0, err
	}
	n, err := t.dests.NextSequence()
	if err != nil {
		return 0, fmt.Errorf("number destination: %w", err)
	}
	id := uint32(n)
	if err := t.putDest(id, destRow{URL: url}); err != nil {
		return 0, err
	}
	if t.delta.names == nil {
		t.delta.names = map[string]uint32{}
	}
	t.delta.names[url] = id
	return id, nil
}

func (t *txn) putDest(id uint32, r destRow) error {
	v, err := r.encode(id)
	if err != nil {
		return err
	}
	if err := t.dests.Put(destKey(id), v); err != nil {
		return fmt.Errorf("put destination: %w", err)
	}
	t.dirty = true
	return nil
}

// findEnds looks up what are now the first and the last rows of the streams that rows were taken from.
func (t *txn) findEnds() error {
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
		// Going back is not safe: Prev stops at pages that deletions of this transaction emptied. Nor is it needed,
		// for rows mostly leave from the front.
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

// lastSeq answers the highest seq that a stream has had rows with since it last had none.
func (t *txn) lastSeq(k streamKey) uint64 {
	for i := len(t.delta.added) - 1; i >= 0; i-- {
		if m := &t.delta.added[i]; m.dest == k.dest && m.stream == k.stream {
			return m.seq
		}
	}
	return t.known.lastSeq(k)
}
