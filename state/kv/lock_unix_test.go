//go:build unix

package kv

import (
	"context"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLockReleasedWithCopies: a released lock is free although its descriptor lives on, as in a child process between
// fork and exec.
func TestLockReleasedWithCopies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.lock")
	first, err := lockFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := unix.Dup(int(first.f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(copied)
	if err := first.release(); err != nil {
		t.Fatal(err)
	}
	now, cancel := context.WithCancel(t.Context())
	cancel() // what is taken is not waited for
	second, err := lockFile(now, path)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.release(); err != nil {
		t.Error(err)
	}
}
