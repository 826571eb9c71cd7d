package daemon

import (
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestTells: what the kernel makes up, and what is not there, tells of nothing.
func TestTells(t *testing.T) {
	for _, dir := range []string{"/proc", "/sys", t.TempDir() + "/none"} {
		kit.Check(t, !diskTells(dir), "%s tells of every change", dir)
	}
	if !diskTells("/dev/shm") {
		t.Skip("no tmpfs at /dev/shm")
	}
}
