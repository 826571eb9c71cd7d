package kv

// The file is mapped into memory, and each page that was touched counts as the process's memory until the system needs
// it: after an import a daemon would look hundreds of megabytes large. So touched pages are given back in time.

// giveBackEvery is how many bytes of rows are touched before the pages of the map are given back. Commits touch the
// map too: the rows beside those that come or go are copied with their page.
const giveBackEvery = 16 << 20

// touch counts bytes, and says when it is time to give pages back.
func (db *DB) touch(n int64) bool {
	if n == 0 || db.touched.Add(n) < giveBackEvery {
		return false
	}
	db.touched.Store(0)
	return true
}

// givePagesBack gives all touched pages of the map back; reads and commits that go on fetch theirs again. It fails when
// the file is closed, and then there is nothing to give back.
func (db *DB) givePagesBack() {
	db.touched.Store(0)
	_ = db.viewQuietly(func(tx *Snapshot) error {
		giveBack(tx.bolt)
		return nil
	})
}
