package sys

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text := kit.Try(os.ReadFile(path)).Must(t)
	return string(text)
}

// only fails unless a folder holds these names and no others.
func only(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries := kit.Try(os.ReadDir(dir)).Must(t)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	kit.Equal(t, "the folder holds", got, names)
}

// A step that fails leaves the old file whole until the new one has its name, and nothing next to it. The content is
// durable before the name is given, and the name at the end.
func TestFaults(t *testing.T) {
	steps := []string{"sync", "close", "name", "sync folder"}
	for i, failing := range append(steps, "none") {
		path := filepath.Join(t.TempDir(), "settings")
		kit.Must(t, os.WriteFile(path, []byte("old"), 0o600))
		f := kit.Try(CreateFile(path)).Must(t)
		kit.Try(f.WriteString("new")).Must(t)
		var taken []string
		broken := errors.New("broken disk")
		f.fault = func(step string) error {
			if taken = append(taken, step); step == failing {
				return broken
			}
			return nil
		}
		kit.Equal(t, failing+" fails", errors.Is(f.Commit(), broken), (failing != "none"))
		want := "old"
		if i > slices.Index(steps, "name") {
			want = "new"
		}
		kit.Equal(t, failing+" fails: the file holds", read(t, path), want)
		kit.Check(t, failing != "none" || slices.Equal(taken, steps), "the steps are %q, want %q", taken, steps)
		only(t, filepath.Dir(path), "settings")
	}
}

func TestCommitNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "export")
	for i, want := range []error{nil, fs.ErrExist} {
		f := kit.Try(CreateFile(path)).Must(t)
		kit.Try(f.WriteString([]string{"first", "second"}[i])).Must(t)
		err := f.CommitNew()
		kit.Check(t, errors.Is(err, want), "%v, want %v", err, want)
		kit.Equal(t, "it holds", read(t, path), "first")
		only(t, filepath.Dir(path), "export")
	}
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings")
	kit.Must(t, os.WriteFile(path, []byte("a longer text than the new one"), 0o644))
	if err := WriteFile(path, []byte("new")); err != nil || read(t, path) != "new" {
		t.Errorf("%v, %q", err, read(t, path))
	}
	info := kit.Try(os.Stat(path)).Must(t)
	kit.Check(t, runtime.GOOS == "windows" || info.Mode().Perm() == 0o600, "mode %v", info.Mode())
	kit.Check(t, WriteFile(filepath.Join(path, "below a file"), nil) != nil, "a file below a file was written")
}

// A link stays a link, and leads to the new content.
func TestWriteThroughLink(t *testing.T) {
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "kept")
	kit.Must(t, os.WriteFile(elsewhere, []byte("old"), 0o600))
	link := filepath.Join(dir, "settings")
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Skip(err)
	}
	if err := WriteFile(link, []byte("new")); err != nil || read(t, elsewhere) != "new" {
		t.Errorf("%v, the file holds %q", err, read(t, elsewhere))
	}
	info := kit.Try(os.Lstat(link)).Must(t)
	kit.Check(t, info.Mode().Type() == fs.ModeSymlink, "the link is %v", info.Mode())
	only(t, dir, "settings")
}
