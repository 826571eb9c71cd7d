package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

// compactBytes is what one transaction of a compaction carries.
const compactBytes = 8 << 20

// scrubBytes is what may be in use of a file that is scrubbed: commits wait no longer than for about a second.
const scrubBytes = 128 << 20

// liveSize answers the bytes of the file that have held anything, and those of them that are in use.
func (db *DB) liveSize() (size, live int64, err error) {
	b, release, err := db.acquire()
	if err != nil {
		return 0, 0, err
	}
	defer release()
	err = db.guard(func() error {
		return b.View(func(tx *bbolt.Tx) error { // not db.view: this is no activity
			s := b.Stats()
			size = tx.Size()
			live = size - int64(s.FreePageN+s.PendingPageN)*int64(b.Info().PageSize)
			return nil
		})
	})
	return size, live, err
}

// Scrub has Run compact the file soon, so that nothing of what was removed is left in its empty pages. A file with much
// more in use keeps them until it has become smaller: commits wait for a compaction. Not remembered over a restart.
func (db *DB) Scrub() {
	db.scrubs.Store(true)
	db.ring()
}

// compactionDue says whether the file is large and mostly empty, or to be scrubbed, and the disk has place for a second
// one.
func (db *DB) compactionDue() bool {
	size, live, err := db.liveSize()
	if err != nil {
		return false
	}
	if (!db.scrubs.Load() || live > scrubBytes) && !db.mostlyEmpty(size, live) {
		return false
	}
	free, _, err := db.opt.FreeDisk(filepath.Dir(db.opt.Path))
	return err == nil && free > 2*uint64(live)
}

func (db *DB) mostlyEmpty(size, live int64) bool {
	return size > db.limits().CompactAbove && (live < size/4 || live < size/2 && db.Usage().Batches == 0)
}

// compact rewrites the file without its empty pages. Commits wait until it is done, reads only while the files are
// exchanged. Interrupted anywhere, either file is whole and in place; Open removes what is left aside.
func (db *DB) compact(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.group.write.Lock()
	defer db.group.write.Unlock()
	db.scrubs.Store(false) // one that fails is not tried for ever
	began, aside := time.Now(), db.opt.Path+suffixAside
	before, _, err := db.liveSize()
	if err != nil {
		return fmt.Errorf("compact state: %w", err)
	}
	if err := db.copyAside(aside); err != nil {
		_ = os.Remove(aside)
		return fmt.Errorf("compact state: %w", err)
	}
	if err := db.exchange(aside); err != nil {
		_ = os.Remove(aside)
		return fmt.Errorf("compact state: %w", err)
	}
	after, _, err := db.liveSize()
	db.log.Info("state compacted", "before", before, "after", after, "took", time.Since(began))
	return err
}

// copyAside writes all rows to a file of their own, and makes sure that it is whole and on the disk.
func (db *DB) copyAside(aside string) error {
	if err := os.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := db.fault("compact copy"); err != nil {
		return err
	}
	to, err := openBolt(aside, db.opt.maxSize)
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
	return checkFile(aside)
}

func (db *DB) copyRows(to *bbolt.DB) error {
	from, release, err := db.acquire()
	if err != nil {
		return err
	}
	defer release()
	return db.guard(func() error {
		if err := bbolt.Compact(to, from, compactBytes); err != nil {
			return err
		}
		// Once more, so that both of the new file's roots hold all rows.
		return to.Update(func(tx *bbolt.Tx) error {
			meta := tx.Bucket([]byte(bucketMeta))
			return meta.Put([]byte(keySchema), clone(meta.Get([]byte(keySchema))))
		})
	})
}

// exchange puts the file aside in place of the open one. Between closing and reopening there is none; when that is
// where it ends, the next transaction opens the file.
func (db *DB) exchange(aside string) error {
	db.handle.Lock()
	defer db.handle.Unlock()
	if db.closed {
		return ErrClosed
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

// reopen opens the file after an exchange. First it makes the exchange last: until that is sure, commits to the new
// file could be lost to a power cut that brings the old one back. The caller holds handle.
func (db *DB) reopen() (err error) {
	if err := db.fault("compact sync dir"); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(db.opt.Path)); err != nil {
		return err
	}
	if err := db.fault("compact reopen"); err != nil {
		return err
	}
	db.bolt, err = openBolt(db.opt.Path, db.opt.maxSize)
	return err
}
