package kv

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

const rowCount, rowBytes = 64 << 8, 4 << 10

// manyRows is a file of 64 MiB none of which counts as memory, and what counts as memory of the process.
func manyRows(t *testing.T) (s store, before int64) {
	t.Helper()
	s = open(t, Options{Path: filepath.Join(t.TempDir(), "state.db")})
	for i := range rowCount >> 8 {
		var some []string
		for k := range 256 {
			some = append(some, fmt.Sprintf("row%d.%d", i, k))
		}
		put(t, s, rowBytes, some...)
	}
	s.givePagesBack()
	return s, mapped()
}

// mostDuringCopy is how much counted as memory at once during the copy of a compaction.
func mostDuringCopy(t *testing.T, s store) int64 {
	t.Helper()
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
	kit.Must(t, err)
	return most.Load()
}

// TestCopyReturnsPages: the copy of a compaction touches every page of two files, but few of them count as memory at
// once. Nor do they afterwards, though the new file was read to open it.
func TestCopyReturnsPages(t *testing.T) {
	s, before := manyRows(t)
	got := mostDuringCopy(t, s) - before
	for tries := 1; got > rowCount*rowBytes*3/4 && tries < 50; tries++ { // a busy machine may return them too late
		got = mostDuringCopy(t, s) - before
	}
	if got > rowCount*rowBytes*3/4 { // without, it is one and a half of it
		t.Errorf("%d of %d bytes counted as memory", got, rowCount*rowBytes)
	}
	kit.Must(t, s.Compact(t.Context()))
	got = mapped() - before
	kit.Check(t, got <= rowCount*rowBytes/4, "%d of %d bytes count as memory after a compaction", got, rowCount*rowBytes)
}

// TestSmallReadsReturnPages: reads of a row each bring in the pages around it, and those are returned too.
func TestSmallReadsReturnPages(t *testing.T) {
	s, before := manyRows(t)
	var most int64
	for i := range rowCount {
		key := fmt.Appendf(nil, "row%d.%d", i>>8, i&255)
		kit.Must(t, s.View(t.Context(), func(tx *Snapshot) error {
			kit.Check(t, tx.Bucket(rows).Get(key) != nil, "no row %s", key)
			return nil
		}))
		most = max(most, mapped()-before)
	}
	kit.Check(t, most <= rowCount*rowBytes/2, "%d of %d bytes counted as memory", most, rowCount*rowBytes)
}
