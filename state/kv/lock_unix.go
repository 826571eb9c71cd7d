//go:build unix

package kv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ccship/ccship/internal/sys"
)

// fileLock is a lock on a file next to the state. bbolt locks the state file itself, but that file is replaced when it
// is compacted or set aside: a second process could then open the new file while the first still has the old one. The
// system drops the lock when the process ends, however it ends, so there is no stale lock to clean up.
type fileLock struct{ f *os.File }

// lockFile takes the lock, and waits for another process that has it until ctx ends: ErrLocked.
func lockFile(ctx context.Context, path string) (*fileLock, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		f, err := sys.OpenOwn(path, os.O_RDWR|os.O_CREATE)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && isNamed(f, path) {
			return &fileLock{f}, nil
		}
		_ = f.Close()
		switch {
		case err == nil, errors.Is(err, unix.EINTR): // removed by who had it: another file has the name, or none
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w (%s)", ErrLocked, path)
		case <-tick.C:
		}
	}
}

// isNamed reports whether an open file still has its name. A lock on a file without a name excludes nobody.
func isNamed(f *os.File, path string) bool {
	ours, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(ours, named)
}

// release removes the file while it is locked, and releases the lock: who waits for it sees that the name is gone, and
// opens the next. The lock is dropped by itself: a child process that is being started has the descriptor until it
// executes its program.
func (l *fileLock) release() error {
	var removed error
	if isNamed(l.f, l.f.Name()) {
		removed = os.Remove(l.f.Name())
	}
	return errors.Join(removed, unix.Flock(int(l.f.Fd()), unix.LOCK_UN), l.f.Close())
}
