//go:build unix

package kv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// fileLock is a lock on a file next to the state. bbolt locks the state file itself, but that file is replaced when it
// is compacted or set aside: a second process could then open the new file while the first still has the old one. The
// system drops the lock when the process ends, however it ends, so there is no stale lock to clean up.
type fileLock struct{ f *os.File }

// lockFile takes the lock, and waits for another process that has it until ctx ends: ErrLocked.
func lockFile(ctx context.Context, path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return &fileLock{f}, nil
		}
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("%w (%s)", ErrLocked, path)
		case <-tick.C:
		}
	}
}

// release releases the lock. The file stays: removing it would let two processes lock two files of one name.
// The lock is dropped by itself: a child process that is being started has the descriptor until it executes its
// program.
func (l *fileLock) release() error {
	return errors.Join(unix.Flock(int(l.f.Fd()), unix.LOCK_UN), l.f.Close())
}
