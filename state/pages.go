package state

import "go.etcd.io/bbolt"

// giveBackEvery is how many bytes of rows are read before the pages they were read from are given back.
const giveBackEvery = 32 << 20

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
