//go:build unix

package sys

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestOpenOwn: a link, a pipe, a folder and a file of another user are refused at once, and nothing is made or written
// behind a link.
func TestOpenOwn(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(errs ...error) {
		t.Helper()
		kit.Must(t, errors.Join(errs...))
	}
	must(os.WriteFile(at("mine"), []byte("mine\n"), 0o644), os.Symlink(at("mine"), at("link")), os.Symlink(at("none"), at("dangling")),
		os.Mkdir(at("folder"), 0o700), syscall.Mkfifo(at("pipe"), 0o600), os.WriteFile(at("theirs"), nil, 0o666))
	refused := []string{"link", "dangling", "folder", "pipe"}
	if os.Geteuid() == 0 {
		must(os.Chown(at("theirs"), 4711, 4711))
		refused = append(refused, "theirs")
	}
	for _, name := range refused {
		for _, flag := range []int{os.O_RDONLY, os.O_RDWR | os.O_CREATE, os.O_WRONLY | os.O_APPEND | os.O_CREATE} {
			if f, err := OpenOwn(at(name), flag); err == nil {
				t.Errorf("%s is opened (%#x): %v", name, flag, f.Close())
			} else if name != "folder" && !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := os.Lstat(at("none")); err == nil {
		t.Error("a file was made behind a link")
	}
	for _, name := range []string{"mine", "fresh"} {
		f, err := OpenOwn(at(name), os.O_RDWR|os.O_CREATE)
		must(err, f.Close())
	}
	if info, err := os.Stat(at("fresh")); err != nil || info.Mode() != 0o600 {
		t.Errorf("a new file: %v %v", info, err)
	}
	if text, err := ReadOwn(at("mine")); string(text) != "mine\n" || err != nil {
		t.Errorf("%q %v", text, err)
	}
}
