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
	_, err := os.Lstat(at("none"))
	kit.Check(t, err != nil, "a file was made behind a link")
	for _, name := range []string{"mine", "fresh"} {
		f, err := OpenOwn(at(name), os.O_RDWR|os.O_CREATE)
		must(err, f.Close())
	}
	info, err := os.Stat(at("fresh"))
	kit.Check(t, err == nil && info.Mode() == 0o600, "a new file: %v %v", info, err)
	text, err := ReadOwn(at("mine"))
	kit.Check(t, string(text) == "mine\n" && err == nil, "%q %v", text, err)
}
