//go:build unix

package document

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestOpenToSend opens what is to be sent only where it belongs: a row may be older than what its path leads to by now.
func TestOpenToSend(t *testing.T) {
	dir := t.TempDir()
	root, secret := filepath.Join(dir, "root"), filepath.Join(dir, "secret")
	must := func(err error) {
		t.Helper()
		kit.Must(t, err)
	}
	must(os.MkdirAll(filepath.Join(root, "docs"), 0o700))
	must(os.WriteFile(secret, []byte("secret"), 0o600))
	must(os.WriteFile(filepath.Join(root, "docs", "large.md"), []byte("public"), 0o600))
	must(os.Symlink(secret, filepath.Join(root, "docs", "link.md")))
	must(os.Symlink("large.md", filepath.Join(root, "docs", "inside.md")))
	must(os.Symlink(dir, filepath.Join(root, "out")))
	must(syscall.Mkfifo(filepath.Join(root, "docs", "pipe"), 0o600))
	for name, opens := range map[string]bool{
		"docs/large.md": true, "docs/inside.md": true, "docs/link.md": false, "out/secret": false, "../secret": false,
		"docs/pipe": false, "docs": false, "docs/none.md": false, secret: false,
	} {
		c, err := openToSend(root, name, nil, nil)
		if (err == nil) != opens {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !opens {
			continue
		}
		text := make([]byte, c.Size())
		_, err = c.ReadAt(text, 0)
		kit.Check(t, (err == nil || errors.Is(err, io.EOF)) && string(text) == "public", "%s: %q, %v", name, text, err)
		must(c.Close())
	}
	must(os.MkdirAll(filepath.Join(dir, "docs"), 0o700)) // between two pieces another folder replaces this one
	must(os.WriteFile(filepath.Join(dir, "docs", "large.md"), []byte("secret"), 0o600))
	must(os.Rename(filepath.Join(root, "docs"), filepath.Join(root, "was")))
	must(os.Symlink(filepath.Join(dir, "docs"), filepath.Join(root, "docs")))
	if c, err := openToSend(root, "docs/large.md", nil, nil); err == nil {
		t.Error("it is opened through a folder that leads out")
		c.Close()
	}
}
