package kv

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestCopyReturnsPages: the copy of a compaction touches every page of two files, but few of them count as memory at once.
func TestCopyReturnsPages(t *testing.T) {
	const rows, size = 64, 1 << 20
	s := open(t, Options{Path: filepath.Join(t.TempDir(), "state.db")})
	for i := range rows {
		var small []string
		for k := range 256 {
			small = append(small, fmt.Sprintf("row%d.%d", i, k))
		}
		put(t, s, size/256, small...)
	}
	s.givePagesBack()
	before := mapped()
	var most atomic.Int64
	var watch sync.WaitGroup
	done := make(chan struct{})
	watch.Go(func() {
		for tick := time.NewTicker(time.Millisecond); ; {
			most.Store(max(most.Load(), mapped()))
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	})
	err := s.copyAside(s.opt.Path + suffixAside)
	close(done)
	watch.Wait()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d bytes at once", most.Load()-before, rows*size)
	if most.Load()-before > rows*size*3/4 { // without, it is one and a half of it
		t.Errorf("%d of %d bytes counted as memory", most.Load()-before, rows*size)
	}
}
