package state

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// Rows of files that are found one after the other fill their pages, and stay so while lines come to some of them.
func TestFilesFillPages(t *testing.T) {
	db := open(t, Options{})
	const files, group = 1000, 8
	for first := 1; first < files; first += group {
		var steps []Step
		for id := first; id < first+group; id++ {
			steps = append(steps, advance(tail.FileID(id), 0, 1, 10))
		}
		commit(t, db, steps...)
	}
	filled := func() (share float64) {
		kit.Must(t, db.View(t.Context(), func(tx *kv.Snapshot) error {
			s := tx.Bucket(bucketFiles).Stats()
			share = float64(s.LeafInuse) / float64(s.LeafAlloc)
			return nil
		}))
		return share
	}
	share := filled()
	kit.Check(t, share >= 0.75, "%.0f %% of the pages of files are filled", 100*share)
	for id := 3; id < files; id += 10 {
		commit(t, db, advance(tail.FileID(id), 1, 1<<40, 10))
	}
	share = filled()
	kit.Check(t, share >= 0.75, "after lines came to a tenth of the files, %.0f %% are", 100*share)
}
