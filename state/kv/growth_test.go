package kv

import (
	"fmt"
	"testing"
)

// TestGrowth: a small file looks small, and a large one does not grow in small steps: each costs a sync.
func TestGrowth(t *testing.T) {
	s := open(t, Options{})
	put(t, s, 100, "a")
	if size := s.FileSize(); size == 0 || size > 2<<20 {
		t.Errorf("a file with one row has %d bytes", size)
	}
	grown, last := 0, s.FileSize()
	for i := range 64 {
		put(t, s, 1<<20, fmt.Sprint("row", i))
		if size := s.FileSize(); size != last {
			grown, last = grown+1, size
		}
	}
	if last < 64<<20 || last > 64<<20+2*mostGrowth {
		t.Errorf("64 MiB of rows lie in a file of %d bytes", last)
	}
	if grown > 16 {
		t.Errorf("it grew %d times", grown)
	}
}
