//go:build unix

package sys

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestRemove: a daemon's files go with it, and those of one that was killed when it is asked for; those of one that
// delivers stay.
func TestRemove(t *testing.T) {
	root := t.TempDir()
	l := kit.Try(AcquireLock([]string{root}, Holder{PID: 7})).Must(t)
	var held *HeldError
	if removed, err := RemoveLock([]string{root}); !errors.As(err, &held) || len(removed) != 0 {
		t.Errorf("removed %q while a daemon delivers the root: %v", removed, err)
	}
	_, ok := FindHolder([]string{root})
	kit.Check(t, ok, "the lock is gone")
	names := []string{l.files[0].Name(), l.files[1].Name()}
	kit.Must(t, l.Release())
	gone := func(when string) {
		t.Helper()
		for _, name := range names {
			kit.Err(t, fmt.Sprintf("%s %s is there", when, name), os.ErrNotExist)(os.Stat(name))
		}
	}
	gone("after its end")
	_, ok = FindHolder([]string{root})
	kit.Check(t, !ok, "a released root is held")
	gone("after somebody looked")
	for _, name := range names {
		kit.Must(t, os.WriteFile(name, []byte(`{"pid":7}`), 0o600))
	}
	removed, err := RemoveLock([]string{root})
	kit.Check(t, err == nil && len(removed) == 2, "removed %q: %v", removed, err)
	gone("after it was removed,")
}

// TestRemoveBesideAcquire: while the files are removed over and over, no two acquire a root at once.
func TestRemoveBesideAcquire(t *testing.T) {
	root := t.TempDir()
	var mu sync.Mutex // held by the owner of the root
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 300 {
				if _, err := RemoveLock([]string{root}); err != nil && !isHeld(err) {
					t.Error(err)
				}
				l, err := AcquireLock([]string{root}, Holder{PID: 7})
				if err != nil {
					kit.Check(t, isHeld(err), "%v", err)
					continue
				}
				if !mu.TryLock() {
					t.Error("two have the root")
					_ = l.Release()
					return
				}
				for range 20 {
					runtime.Gosched()
				}
				mu.Unlock()
				kit.Should(t, l.Release())
			}
		})
	}
	all.Wait()
	_, _ = RemoveLock([]string{root})
}

// TestNamed: a file that was removed, or replaced, has not its name any more.
func TestNamed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	f, err := openLocked(name)
	kit.Require(t, err == nil && isNamed(f, name), "%v", err)
	defer f.Close()
	if err := os.Remove(name); err != nil || isNamed(f, name) {
		t.Error("the removed file has its name", err)
	}
	other, err := openLocked(name)
	kit.Check(t, err == nil && !isNamed(f, name) && isNamed(other, name), "%v %v", "the replaced file has its name", err)
	_ = other.Close()
}

func isHeld(err error) bool {
	_, ok := errors.AsType[*HeldError](err)
	return ok
}
