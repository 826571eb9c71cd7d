package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

// Bucket is one bucket of the file, and Cursor a position in it. What they return is valid until the transaction ends,
// and must not be changed.
type (
	Bucket = bbolt.Bucket
	Cursor = bbolt.Cursor
)

// Tx is a write transaction under way. Requests that share it see what those before them wrote.
type Tx struct {
	// Now is when it began, in Unix seconds: one time for all rows of one transaction.
	Now int64

	bolt    *bbolt.Tx
	fault   func(step string) error
	memory  []Memory
	changes []Changes // one for each of memory
	dirty   bool      // something was written
	db      *DB
	sum     uint64 // what the writes add to the sum of all rows
}

// Bucket returns a bucket of the schema; nil: there is none of that name.
func (t *Tx) Bucket(name string) *Bucket { return t.bolt.Bucket([]byte(name)) }

// Changes returns the changes of this transaction to one of Options.Memory.
func (t *Tx) Changes(m Memory) Changes {
	return t.changes[slices.Index(t.memory, m)]
}

// Fault makes the named step fail if a test wants that. Put and Delete call it themselves.
func (t *Tx) Fault(step string) error { return t.fault(step) }

// Put stores a row. step names the write to Options.Fault and in the error. value must not change before the
// transaction ends.
func (t *Tx) Put(step string, b *Bucket, key, value []byte) error {
	if err := t.fault(step); err != nil {
		return err
	}
	t.dirty = true
	t.Moved(around)
	t.sum -= storedSum(b, key)
	if err := b.Put(key, value); err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	t.sum += rowSum(key, value, len(value))
	return nil
}

// storedSum returns what a row adds to the sum as it is; 0 when there is none.
func storedSum(b *Bucket, key []byte) uint64 {
	k, v := b.Cursor().Seek(key) // Get answers nil for an empty value too
	if !bytes.Equal(k, key) {
		return 0
	}
	return rowSum(key, v, len(v))
}

// NextSequence answers a number that it never answered for this bucket before, nor will again.
func (t *Tx) NextSequence(bucket string) (uint64, error) {
	b, name := t.Bucket(bucket), []byte(bucket)
	old := b.Sequence()
	n, err := b.NextSequence()
	if err != nil {
		return 0, fmt.Errorf("number row: %w", err)
	}
	t.dirty = true
	t.sum += sequenceSum(name, n) - sequenceSum(name, old)
	return n, nil
}

// Delete removes a row; for step see Put. A missing row is not an error. Deleting from a bucket makes a cursor on it
// skip rows: collect the keys first (Keys).
func (t *Tx) Delete(step string, b *Bucket, key []byte) error {
	if err := t.fault(step); err != nil {
		return err
	}
	t.dirty = true
	t.Moved(around)
	t.sum -= storedSum(b, key)
	if err := b.Delete(key); err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	return nil
}

// Moved counts bytes of rows that came, went or were looked for, so that the pages around them are returned in time.
func (t *Tx) Moved(n int64) {
	if t.db.touch(n) {
		t.db.giveBack(t.bolt)
	}
}

// Each calls fn for the rows of a bucket whose keys begin with prefix, in order, until it returns an error. fn must not
// delete any.
func Each(b *Bucket, prefix []byte, fn func(key, value []byte) error) error {
	c := b.Cursor()
	for k, v := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if err := fn(k, v); err != nil {
			return err
		}
	}
	return nil
}

// Keys copies the keys of a bucket that begin with prefix, in order, so that their rows can be deleted one by one.
func Keys(b *Bucket, prefix []byte) (keys [][]byte) {
	_ = Each(b, prefix, func(k, _ []byte) error {
		keys = append(keys, bytes.Clone(k))
		return nil
	})
	return keys
}

// DeleteAll removes the rows whose keys begin with prefix; for step see Put.
func (t *Tx) DeleteAll(step string, b *Bucket, prefix []byte) error {
	for _, k := range Keys(b, prefix) {
		if err := t.Delete(step, b, k); err != nil {
			return err
		}
	}
	return nil
}

// Snapshot is a read transaction under way: the file as one commit left it.
type Snapshot struct {
	bolt *bbolt.Tx
	db   *DB
}

// Bucket returns a bucket of the schema; nil: there is none of that name.
func (s *Snapshot) Bucket(name string) *Bucket { return s.bolt.Bucket([]byte(name)) }

// ID returns the number of the last commit that it sees. A transaction that wrote nothing has none.
func (s *Snapshot) ID() int { return s.bolt.ID() }

// Moved counts bytes of large rows that were read, and returns their pages in time: they count as our memory.
func (s *Snapshot) Moved(n int64) {
	if s.db.touch(n) {
		s.db.giveBack(s.bolt)
	}
}

// errNothing rolls back a transaction that has nothing to write: even an empty commit is two fsyncs.
var errNothing = errors.New("nothing to commit")

// runGroup runs requests in one transaction. The caller holds group.write. An applyError says that one of the requests
// failed, and that nothing of the others was written either.
func (db *DB) runGroup(group []*request) error {
	var t *Tx
	err := db.update(func(tx *bbolt.Tx) error {
		t = db.begin(tx)
		for _, r := range group {
			if err := r.apply(t); err != nil {
				return &applyError{err}
			}
		}
		if !t.dirty {
			return errNothing
		}
		for _, c := range t.changes {
			if err := c.Finish(); err != nil {
				return err
			}
		}
		if err := putSum(tx, db.sum+t.sum); err != nil {
			return err
		}
		if err := db.fault("commit"); err != nil {
			return &applyError{err}
		}
		return nil
	})
	if errors.Is(err, errNothing) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("commit state: %w", err)
	}
	db.sum += t.sum
	// Durable first: a row is announced only when the disk has it.
	for _, c := range t.changes {
		c.Apply()
	}
	db.Wake()
	return nil
}

// begin begins a transaction and its changes to the owners' memory.
func (db *DB) begin(tx *bbolt.Tx) *Tx {
	t := &Tx{Now: time.Now().Unix(), bolt: tx, db: db, fault: db.fault, memory: db.opt.Memory}
	for _, m := range db.opt.Memory {
		t.changes = append(t.changes, m.Begin(t))
	}
	return t
}

// update runs a write transaction. The caller holds group.write. If the commit itself fails, the disk may or may not
// have it (a failed fsync leaves the new root readable), and the map may show what the disk does not have: bbolt would
// take pages for free that are in use. So the file is opened again, and the memory is loaded again.
func (db *DB) update(fn func(*bbolt.Tx) error) error {
	committing, err := db.tryUpdate(fn)
	if err == nil || !committing || db.failure() != nil {
		return err
	}
	db.stale = true
	db.letGo()
	b, release, e := db.acquire()
	if e == nil {
		e = db.guard(func() error { return db.reload(b) })
		release()
	}
	if e != nil {
		db.log.Warn("reading the state again failed", "path", db.opt.Path, "error", e)
	}
	return err
}

// letGo closes the file, for the next transaction to open again.
func (db *DB) letGo() {
	db.handle.Lock()
	defer db.handle.Unlock()
	if db.bolt != nil {
		_ = db.bolt.Close() // nothing is written by it
		db.bolt = nil
	}
}

// tryUpdate runs a write transaction. committing: it failed in the commit, not before.
func (db *DB) tryUpdate(fn func(*bbolt.Tx) error) (committing bool, err error) {
	b, release, err := db.acquire()
	if err != nil {
		return false, err
	}
	defer release()
	if db.stale {
		if err := db.guard(func() error { return db.reload(b) }); err != nil {
			return false, err
		}
	}
	err = db.guard(func() (err error) {
		committing, err = db.transact(b, fn)
		if err == nil {
			s := b.Stats()
			db.empty.Store(int64(s.FreePageN+s.PendingPageN) * int64(b.Info().PageSize)) // Info touches the map
		}
		return err
	})
	return committing, err
}

// transact is bbolt's Update with two differences. It leaves a transaction open that panics over a damaged page: to
// roll it back, bbolt would walk all pages in its own goroutine, where the next panic ends the process. And it begins
// only at the root that the last one left. committed: the commit failed, not fn.
func (db *DB) transact(b *bbolt.DB, fn func(*bbolt.Tx) error) (committed bool, err error) {
	tx, err := b.Begin(true)
	if err != nil {
		return false, unusable(err)
	}
	defer rescue(&err, func() { _ = tx.Rollback() })
	if last := db.lastTx.Load(); int64(tx.ID()) != last+1 {
		return false, fmt.Errorf("%w: its root went from transaction %d to %d", ErrCorrupt, last, tx.ID()-1)
	}
	if err := fn(tx); err != nil {
		_ = tx.Rollback()
		return false, err
	}
	// Each time a file grows costs a sync of its own, so it grows by more the larger it is. With bbolt's own step, people
	// would see a file of 17 MB that holds 20 kB.
	b.AllocSize = int(min(max(tx.Size()/4, leastGrowth), mostGrowth))
	id := tx.ID()
	if err = tx.Commit(); err == nil {
		err = db.fault("commit sync") // the root is written by now
	}
	if err != nil {
		return true, unusable(err)
	}
	db.lastTx.Store(int64(id))
	return true, nil
}

const (
	leastGrowth = 1 << 20
	mostGrowth  = 16 << 20 // bbolt's own
)

// look is bbolt's View, but refuses a root that is older than one this process has seen.
func (db *DB) look(b *bbolt.DB, fn func(*bbolt.Tx) error) error {
	last := db.lastTx.Load()
	err := b.View(func(tx *bbolt.Tx) error {
		if int64(tx.ID()) < last {
			return fmt.Errorf("%w: its root went back from transaction %d to %d", ErrCorrupt, last, tx.ID())
		}
		return fn(tx)
	})
	return unusable(err)
}

// reload loads what the owners keep in memory, and looks for the buckets that they need. The caller holds group.write,
// or is Open.
func (db *DB) reload(b *bbolt.DB) error {
	err := b.View(func(tx *bbolt.Tx) error {
		for _, name := range db.opt.Schema.Buckets {
			if tx.Bucket([]byte(name)) == nil {
				return fmt.Errorf("%w: bucket %s is missing", ErrCorrupt, name)
			}
		}
		for _, m := range db.opt.Memory {
			if err := m.Load(&Snapshot{tx, db}); err != nil {
				return err
			}
		}
		sum, err := readSum(tx.Bucket([]byte(BucketMeta)).Get([]byte(keySum)))
		if err != nil {
			return err
		}
		db.sum = sum
		db.lastTx.Store(int64(tx.ID()))
		return nil
	})
	if err != nil {
		return fmt.Errorf("read index: %w", unusable(err))
	}
	db.stale = false
	return nil
}

// View runs a read transaction. Copy what fn reads before it leaves fn. Compaction and Close wait for it.
func (db *DB) View(ctx context.Context, fn func(*Snapshot) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer db.Wake()
	return db.viewQuietly(func(s *Snapshot) error {
		defer s.Moved(around) // however little it reads, its pages come with those around them
		return fn(s)
	})
}

// viewQuietly is View without waking Run: reads by Run itself are no activity, or it would never sleep.
func (db *DB) viewQuietly(fn func(*Snapshot) error) error {
	b, release, err := db.acquire()
	if err != nil {
		return err
	}
	defer release()
	return db.guard(func() error {
		return db.look(b, func(tx *bbolt.Tx) error { return fn(&Snapshot{tx, db}) })
	})
}

// acquire returns the open file, which stays until release is called. After a failure it returns that failure at once.
// It opens the file again if a compaction was interrupted between closing and reopening: such a file is intact, and
// only its daemon has it closed.
func (db *DB) acquire() (b *bbolt.DB, release func(), err error) {
	for {
		if err := db.failure(); err != nil {
			return nil, nil, err
		}
		if db.closed.Load() {
			return nil, nil, ErrClosed
		}
		db.handle.RLock()
		if db.bolt != nil {
			return db.bolt, db.handle.RUnlock, nil
		}
		db.handle.RUnlock()
		db.handle.Lock()
		if db.bolt == nil && !db.closed.Load() {
			err = db.reopen()
		}
		db.handle.Unlock()
		if err != nil {
			return nil, nil, fmt.Errorf("reopen state: %w", err)
		}
	}
}
