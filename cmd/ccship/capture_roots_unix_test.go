//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/e2e/kit"
)

// TestCaptureLinkedRoot looks at transcripts whose projects folder is a link.
func TestCaptureLinkedRoot(t *testing.T) {
	dir := t.TempDir()
	kit.Must(t, os.MkdirAll(filepath.Join(dir, "real", "-shop"), 0o700))
	kit.Must(t, os.WriteFile(filepath.Join(dir, "real", "-shop", "s.jsonl"), []byte("{}\n{}"), 0o600))
	kit.Must(t, os.Symlink("real", filepath.Join(dir, "projects")))
	c := &capture{cfg: config.Config{Roots: []string{filepath.Join(dir, "projects")}}}
	kit.Check(t, c.unfinished(), "a last line without a newline is not seen")
	kit.Equal(t, "lines", c.onDisk(), 1)
}
