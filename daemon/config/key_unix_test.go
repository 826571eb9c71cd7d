//go:build unix

package config

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestReadAPIKeyFromPipe refuses what would block for ever.
func TestReadAPIKeyFromPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	kit.Must(t, syscall.Mkfifo(pipe, 0o600))
	_, err := ReadAPIKey(pipe)
	kit.Check(t, err != nil && strings.Contains(err.Error(), "is not a file"), "a pipe: %v", err)
}
