package disk_test

import (
	"testing"

	"github.com/ccship/ccship/daemon/disk"
)

// TestTells: what the kernel makes up, and what is not there, tells of nothing.
func TestTells(t *testing.T) {
	for _, dir := range []string{"/proc", "/sys", t.TempDir() + "/none"} {
		if disk.Tells(dir) {
			t.Errorf("%s tells of every change", dir)
		}
	}
	if !disk.Tells("/dev/shm") {
		t.Skip("no tmpfs at /dev/shm")
	}
}
