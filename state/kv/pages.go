package kv

import "go.etcd.io/bbolt"

// The file is mapped into memory, and each touched page counts as memory of the process until the system needs it:
// after an import a daemon would seem to use hundreds of megabytes. So touched pages are returned early.

// giveBackEvery is how many bytes of the map are in memory before its pages are returned. The system is asked whenever
// half as many were touched.
const giveBackEvery = 4 << 20

// around is what the system maps with a page that is touched: those beside it that it has, on Linux sixteen pages.
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
