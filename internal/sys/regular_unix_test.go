//go:build unix

package sys

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ccship/ccship/e2e/kit"
)

// TestOpenRegular opens files and links to them, and waits for nothing else.
func TestOpenRegular(t *testing.T) {
	at := func(name string) string { return filepath.Join(t.TempDir(), name) }
	file, pipe, link := at("file"), at("pipe"), at("link")
	kit.Must(t, os.WriteFile(file, []byte("text"), 0o600))
	kit.Must(t, unix.Mkfifo(pipe, 0o600))
	kit.Must(t, os.Symlink(file, link))
	for _, path := range []string{file, link} {
		f := kit.Try(OpenRegular(path)).Must(t)
		kit.Equal(t, path, string(kit.Try(io.ReadAll(f)).Must(t)), "text")
		kit.Must(t, f.Close())
	}
	kit.Must(t, os.Remove(link))
	kit.Must(t, os.Symlink(pipe, link))
	folder := kit.Try(os.MkdirTemp("", "s")).Must(t) // a socket's path is short
	defer os.RemoveAll(folder)
	socket := filepath.Join(folder, "s")
	l := kit.Try(net.Listen("unix", socket)).Must(t)
	defer l.Close()
	for _, path := range []string{pipe, link, t.TempDir(), os.DevNull, socket} {
		kit.Err(t, path, ErrNotFile)(OpenRegular(path))
	}
	kit.Err(t, "nothing", os.ErrNotExist)(OpenRegular(at("nothing")))
}
