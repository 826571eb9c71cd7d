//go:build unix

package kv

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestLockFile: whoever has the lock is alone, although each that had it removes the file, and none is left at the end.
func TestLockFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db.lock")
	var inside atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				l, err := lockFile(context.Background(), path)
				if err != nil {
					t.Error(err)
					return
				}
				kit.Equal(t, "have the lock", inside.Add(1), 1)
				kit.Err(t, "the lock has no file", nil)(os.Stat(path))
				inside.Add(-1)
				kit.Should(t, l.Release())
			}
		})
	}
	all.Wait()
	kit.Err(t, "the file is left", fs.ErrNotExist)(os.Stat(path))
}
