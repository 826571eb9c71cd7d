package daemon

import (
	"testing"
)

// TestTells: what the kernel makes up, and what is not there, tells of nothing.
func TestTells(t *testing.T) {
	for _, dir := range []string{"/proc", "/sys", t.TempDir() + "/none"} {
		if diskTells(dir) {
			t.Errorf("%s tells of every change", dir)
		}
	}
	if !diskTells("/dev/shm") {
		t.Skip("no tmpfs at /dev/shm")
	}
}
