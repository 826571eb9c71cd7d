package state

import "go.etcd.io/bbolt"

// giveBackEvery is how many bytes of rows are touched before the pages of the map are given back. Commits touch the
// map too: the rows beside those that come or go are copied with their page.
const giveBackEvery = 16 << 20

// touch counts bytes, and says when it is time.
func (db *DB) touch(n int64) bool {
	if n == 0 || db.touched.Add(n) < giveBackEvery {
		return false
	}
	db.touched.Store(0)
	return true
}

// givePagesBack gives all touched pages of the map back; reads and commits that go on fetch theirs again.
func (db *DB) givePagesBack() {
	db.touched.Store(0)
	b, release, err := db.acquire()
	if err != nil {
		return // closed, or to be opened again by the next transaction
	}
	defer release()
	_ = b.View(func(tx *bbolt.Tx) error { // not db.view: this is no activity
		giveBack(tx)
		return nil
	})
}
