package kv

import (
	"fmt"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestGrowth: a small file looks small, and a large one does not grow in small steps: each costs a sync.
func TestGrowth(t *testing.T) {
	s := open(t, Options{})
	put(t, s, 100, "a")
	size := s.FileSize()
	kit.Check(t, size != 0 && size <= 2<<20, "a file with one row has %d bytes", size)
	grown, last := 0, s.FileSize()
	for i := range 64 {
		put(t, s, 1<<20, fmt.Sprint("row", i))
		if size := s.FileSize(); size != last {
			grown, last = grown+1, size
		}
	}
	kit.Check(t, last >= 64<<20 && last <= 64<<20+2*mostGrowth, "64 MiB of rows lie in a file of %d bytes", last)
	kit.Check(t, grown <= 16, "it grew %d times", grown)
}
