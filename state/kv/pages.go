package kv

import (
	"sync"
	"time"

	"go.etcd.io/bbolt"
)

// The file is mapped into memory, and each touched page counts as memory of the process until the system needs it:
// after an import a daemon would seem to use hundreds of megabytes. So touched pages are returned early.

// giveBackEvery is how many bytes of the map are in memory before its pages are returned. The system is asked whenever
// half as many were touched.
const giveBackEvery = 4 << 20

// around is what the system maps with a page that is touched: those next to it that it has, on Linux sixteen pages.
const around = 64 << 10

// touch counts bytes, and reports whether it is time to return pages: many were touched, and are not the same again and
// again.
func (db *DB) touch(n int64) bool {
	if n == 0 || db.touched.Add(n) < giveBackEvery/2 {
		return false
	}
	db.touched.Store(0)
	now := mapped()
	return now == 0 || now >= db.mapped.Load()+giveBackEvery
}

// givePagesBack returns all touched pages of the map; running reads and commits fetch theirs again. If it fails because
// the file is closed, there is nothing to return.
func (db *DB) givePagesBack() {
	db.touched.Store(0)
	_ = db.viewQuietly(func(tx *Snapshot) error {
		db.giveBack(tx.bolt)
		return nil
	})
}

// giveBack returns the pages, and notes what stays.
func (db *DB) giveBack(tx *bbolt.Tx) {
	giveBack(tx)
	db.mapped.Store(mapped())
}

// giveBackPause is how long a reader of the whole file, which cannot count what it touches, goes on before pages are
// returned.
const giveBackPause = 5 * time.Millisecond

// keepGivingBack returns touched pages of files in the background until stop is called, which waits for it.
func (db *DB) keepGivingBack(files ...*bbolt.DB) (stop func()) {
	done := make(chan struct{})
	var background sync.WaitGroup
	background.Go(func() {
		tick := time.NewTicker(giveBackPause)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if db.touch(giveBackEvery) {
				db.giveBackAll(files)
			}
		}
	})
	return func() { close(done); background.Wait() }
}

// giveBackAll returns the pages of files. What fails here fails for their user, too, who reports it.
func (db *DB) giveBackAll(files []*bbolt.DB) {
	_ = db.guard(func() error {
		for _, f := range files {
			err := f.View(func(tx *bbolt.Tx) error {
				db.giveBack(tx)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}
