//go:build unix

package sys

import (
	"syscall"
	"testing"
)

// TestReleaseBesideFork: a child between fork and exec holds every open file. It does not keep the lock.
func TestReleaseBesideFork(t *testing.T) {
	root := t.TempDir()
	l, err := AcquireLock([]string{root}, Holder{PID: 7})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range l.files {
		inherited, err := syscall.Dup(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(inherited)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if h, ok := FindHolder([]string{root}); ok {
		t.Errorf("held by %+v", h)
	}
}
