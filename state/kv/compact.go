package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

// bbolt never makes its file smaller: a backlog of gigabytes leaves a file of gigabytes. A compaction writes the rows
// to a file of their own and puts that in place of the old one. What a crash or a power cut leaves, by step:
//
//	copy, sync, close  the file as it was, and a part of the new one aside; Open removes that
//	rename             either file, each whole, for the new one was synced and checked before
//	sync dir           the same; no commit has reached the new file yet, so nothing is lost with the old one back
//	reopen             the new file
//
// Commits wait from the first step to the last, so that the copy has them all. Reads go on until the files are swapped.

// compactBytes is what one transaction of a compaction carries.
const compactBytes = 8 << 20

// scrubBytes limits the bytes in use of a file that is scrubbed, so that commits wait for about a second at most.
const scrubBytes = 128 << 20

// liveSize returns the bytes of the file that have ever been used, and those in use now. Calling it does not count as
// activity.
func (db *DB) liveSize() (size, live int64, err error) {
	b, release, err := db.acquire()
	if err != nil {
		return 0, 0, err
	}
	defer release()
	err = db.guard(func() error {
		return db.look(b, func(tx *bbolt.Tx) error {
			s := b.Stats()
			size = tx.Size()
			live = size - int64(s.FreePageN+s.PendingPageN)*int64(b.Info().PageSize)
			return nil
		})
	})
	return size, live, err
}

// Scrub makes Run compact the file soon, so that its empty pages hold nothing of what was removed. A file with much
// more in use keeps those pages until it has become smaller, because commits wait for a compaction. A restart forgets
// it.
func (db *DB) Scrub() {
	db.scrubs.Store(true)
	db.Wake()
}

// compactionDue reports whether the file is large and mostly empty, or must be scrubbed, and the disk has space for a
// second copy.
func (db *DB) compactionDue() bool {
	size, live, err := db.liveSize()
	if err != nil {
		return false
	}
	if (!db.scrubs.Load() || live > scrubBytes) && !db.mostlyEmpty(size, live) {
		return false
	}
	free, _, err := db.FreeDisk()
	return err == nil && free > 2*uint64(live)
}

// mostlyEmpty reports whether a compaction pays: the file is large, and little of it is in use. With a backlog the
// empty pages will soon be used again, so more of them are kept.
func (db *DB) mostlyEmpty(size, live int64) bool {
	return size > db.compactAbove.Load() && (live < size/4 || live < size/2 && db.opt.Drained())
}

// Compact rewrites the file without its empty pages. Commits wait until it is done, reads only while the files are
// swapped. If it is interrupted, one of the two files is intact and in place; Open removes what is left of the other.
// Run calls it when it is due.
func (db *DB) Compact(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !db.group.write.lockUnless(db.broken) {
		return fmt.Errorf("compact state: %w", db.cause)
	}
	defer db.group.write.Unlock()
	db.scrubs.Store(false) // a failed scrub is not retried: it would delay every commit, every second
	began, aside := time.Now(), db.opt.Path+suffixAside
	before, _, err := db.liveSize()
	if err != nil {
		return fmt.Errorf("compact state: %w", err)
	}
	if err := db.copyAside(aside); err != nil {
		_ = os.Remove(aside)
		return fmt.Errorf("compact state: %w", err)
	}
	if err := db.swap(aside); err != nil {
		_ = os.Remove(aside)
		return fmt.Errorf("compact state: %w", err)
	}
	after, _, err := db.liveSize()
	db.log.Info("state compacted", "before", before, "after", after, "took", time.Since(began))
	return err
}

// copyAside writes all rows to a new file, and makes sure that it is intact and on disk.
func (db *DB) copyAside(aside string) error {
	if err := os.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := db.fault("compact copy"); err != nil {
		return err
	}
	to, _, err := openBolt(aside, db.opt.MaxSize)
	if err != nil {
		return err
	}
	err = db.copyRows(to)
	if err == nil {
		err = db.fault("compact sync")
	}
	if err == nil {
		err = to.Sync()
	}
	if err == nil {
		err = db.fault("compact close")
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return err
	}
	err = checkFile(aside)
	if errors.Is(err, ErrCorrupt) && errors.Is(checkFile(db.opt.Path), ErrCorrupt) {
		db.fail(err) // a row was lost in use: no copy of this file will be whole
	}
	return err
}

// copyRows copies all buckets with their sequences, so that numbers are still never reused.
func (db *DB) copyRows(to *bbolt.DB) error {
	from, release, err := db.acquire()
	if err != nil {
		return err
	}
	defer release()
	defer db.keepGivingBack(from, to)() // the copy touches every page of both
	return db.guard(func() error {
		if err := bbolt.Compact(to, from, compactBytes); err != nil {
			return err
		}
		// Write once more, so that both roots of the new file hold all rows.
		return to.Update(func(tx *bbolt.Tx) error {
			meta := tx.Bucket([]byte(BucketMeta))
			return meta.Put([]byte(keySchema), bytes.Clone(meta.Get([]byte(keySchema))))
		})
	})
}

// swap replaces the open file by the new one. It closes the old one first, because Windows cannot rename over an open
// file. In between no file is open; if swap ends there, the next transaction opens it.
func (db *DB) swap(aside string) error {
	db.handle.Lock()
	defer db.handle.Unlock()
	if db.closed.Load() {
		return ErrClosed
	}
	if err := db.failure(); err != nil {
		return err
	}
	old := db.bolt
	db.bolt = nil
	if err := old.Close(); err != nil {
		return err
	}
	if err := db.fault("compact rename"); err != nil {
		return err
	}
	if err := os.Rename(aside, db.opt.Path); err != nil {
		return err
	}
	return db.reopen()
}

// reopen opens the file after a swap. First it makes the new name durable: otherwise a power cut could bring the old
// file back and lose commits to the new one. The caller holds handle.
func (db *DB) reopen() (err error) {
	if err := db.fault("compact sync dir"); err != nil {
		return err
	}
	if err := db.syncDir(filepath.Dir(db.opt.Path)); err != nil {
		return err
	}
	if err := db.fault("compact reopen"); err != nil {
		return err
	}
	b, info, err := openBolt(db.opt.Path, db.opt.MaxSize)
	if err != nil {
		return err
	}
	db.bolt, db.info = b, info
	return db.guard(func() error {
		return b.View(func(tx *bbolt.Tx) error {
			db.lastTx.Store(int64(tx.ID()))
			db.giveBack(tx) // to open the file, bbolt reads it all: it looks for free pages
			return nil
		})
	})
}
