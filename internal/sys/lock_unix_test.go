//go:build unix

package sys

import (
	"syscall"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestReleaseBesideFork: a child between fork and exec holds every open file. It does not keep the lock.
func TestReleaseBesideFork(t *testing.T) {
	root := t.TempDir()
	l := kit.Try(AcquireLock([]string{root}, Holder{PID: 7})).Must(t)
	for _, f := range l.files {
		inherited := kit.Try(syscall.Dup(int(f.Fd()))).Must(t)
		defer syscall.Close(inherited)
	}
	kit.Must(t, l.Release())
	h, ok := FindHolder([]string{root})
	kit.Check(t, !ok, "held by %+v", h)
}
