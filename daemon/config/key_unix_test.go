//go:build unix

package config

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReadAPIKeyFromPipe refuses what would block for ever.
func TestReadAPIKeyFromPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadAPIKey(pipe); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("a pipe: %v", err)
	}
}
