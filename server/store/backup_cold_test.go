package store_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/sqlite"
)

// TestBackupCold: a backup has what is in cold storage, and its restored copy does not share objects with the original.
func TestBackupCold(t *testing.T) {
	dir := t.TempDir()
	st := openWith(t, filepath.Join(t.TempDir(), "server.db"), store.Opening{Blocks: folderURL(dir)})
	all := prose(0, 1500, 2000)
	put(t, st, batch("s", all...))
	sum := upload(t, st, 0, "s", "a.txt", []byte("content"))
	cool(t, st)
	put(t, st, batch("hot", object(0, "{}")))
	var copied bytes.Buffer
	kit.Must(t, st.Backup(t.Context(), &copied, nil))
	before := inFolder(t, dir)

	path := filepath.Join(t.TempDir(), "restored.db")
	for name, damaged := range map[string][]byte{
		"cut":     copied.Bytes()[:copied.Len()-200<<10],
		"changed": slices.Concat(copied.Bytes()[:copied.Len()-100<<10], []byte("?"), copied.Bytes()[copied.Len()-100<<10+1:]),
	} {
		err := sqlite.Restore(t.Context(), path, bytes.NewReader(damaged), false, "")
		_, there := os.Stat(path)
		kit.Check(t, errors.Is(err, lines.ErrBackup) && there != nil, "%s: %v, %v", name, err, there)
	}
	other := t.TempDir()
	for place, blocks := range map[string]string{dir: "", other: folderURL(other)} {
		path := filepath.Join(t.TempDir(), "restored.db")
		kit.Must(t, sqlite.Restore(t.Context(), path, bytes.NewReader(copied.Bytes()), false, blocks))
		back := openAt(t, path)
		got := dump(t, openSession(t, back, "s"), 0)
		kit.Check(t, slices.Equal(got, listed(all)) && blobContent(t, back, sum) == "content",
			"in %s: %d lines can be read", place, len(got))
		kit.Try(back.Forget(t.Context(), server.Scope{All: true}, "s", 0, start)).Must(t)
		kit.Must(t, back.Sweep(t.Context()))
		found := audited(t, back)
		kit.Check(t, len(found) <= 0, "the copy: %q", found)
	}
	for _, object := range before {
		kit.Err(t, "the copy removed an object of the original", nil)(os.Stat(object))
	}
	found := audited(t, st)
	kit.Check(t, len(found) <= 0 && len(dumpOf(t, st, "s")) == len(all), "the original: %q", found)

	// While a backup is made nothing is removed, and afterwards it is.
	release := kit.Try(st.Hold(t.Context())).Must(t)
	kit.Try(st.Forget(t.Context(), server.Scope{All: true}, "s", 0, start)).Must(t)
	if err := st.Sweep(t.Context()); err != nil || len(kept(before)) != len(before) {
		t.Errorf("during a backup %d of %d objects are left: %v", len(kept(before)), len(before), err)
	}
	kit.Must(t, release())
	if err := st.Sweep(t.Context()); err != nil || len(kept(before)) != 0 {
		t.Errorf("after it %d of %d objects are left: %v", len(kept(before)), len(before), err)
	}
}

// kept are the files that are still there.
func kept(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		_, err := os.Stat(path)
		return err != nil
	})
}
