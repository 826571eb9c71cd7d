package tail

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestIDsAscendAsFilesAreRead: rows of files that are read one after another are neighbours in the state, in whatever
// order names and sizes are.
func TestIDsAscendAsFilesAreRead(t *testing.T) {
	w := newWorld(t)
	const n = 40
	for i := range n {
		rel := fmt.Sprintf("p%d/%02d.jsonl", i%3, i)
		w.write(rel, lines(fmt.Sprint(i), 1+i*5%7, 100))
		w.age(rel, time.Hour+time.Duration(i*17%n)*time.Hour)
	}
	w.start()
	var all []kept
	w.until("every file is read", func() bool {
		all = all[:0]
		for i := range n {
			all = append(all, w.mem.named(fmt.Sprintf("%02d", i))...)
		}
		return len(all) == n
	})
	slices.SortFunc(all, func(a, b kept) int { return cmp.Compare(b.File.Stat.ModTime, a.File.Stat.ModTime) })
	for i := 1; i < n; i++ {
		if gap := all[i].File.ID - all[i-1].File.ID; gap == 0 || gap > n*idGap {
			t.Errorf("%s is read behind %s: ids %x and %x", all[i].File.Path, all[i-1].File.Path, all[i].File.ID, all[i-1].File.ID)
		}
	}
}

// TestIDsOfARunAreNotThoseOfAnother: each run begins anywhere, so that an id that was forgotten is not given again.
func TestIDsOfARunAreNotThoseOfAnother(t *testing.T) {
	seen := map[FileID]bool{}
	for range 100 {
		tb := newTable(nil)
		for range 100 {
			id := tb.freeID()
			kit.Require(t, id != 0 && !seen[id], "id %x", id)
			seen[id] = true
		}
	}
}
