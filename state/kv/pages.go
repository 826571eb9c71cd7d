package kv

// The file is mapped into memory, and each touched page counts as memory of the process until the system needs it:
// after an import a daemon would seem to use hundreds of megabytes. So touched pages are returned early.

// giveBackEvery is how many bytes of rows are touched before the pages of the map are returned. Commits touch the map
// too: they copy neighbouring rows with their page.
const giveBackEvery = 16 << 20

// touch counts bytes, and reports whether it is time to return pages.
func (db *DB) touch(n int64) bool {
	if n == 0 || db.touched.Add(n) < giveBackEvery {
		return false
	}
	db.touched.Store(0)
	return true
}

// givePagesBack returns all touched pages of the map; running reads and commits fetch theirs again. If it fails because
// the file is closed, there is nothing to return.
func (db *DB) givePagesBack() {
	db.touched.Store(0)
	_ = db.viewQuietly(func(tx *Snapshot) error {
		giveBack(tx.bolt)
		return nil
	})
}
