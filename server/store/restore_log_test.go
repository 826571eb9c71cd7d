package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlite"
)

// killed copies a store that is open, with its log, to another folder: what a server leaves that is killed.
func killed(t *testing.T, s *sqlite.Store) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "server.db")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		data, err := os.ReadFile(s.Path() + suffix)
		if err == nil {
			err = os.WriteFile(path+suffix, data, 0o600)
		}
		kit.Must(t, err)
	}
	return path
}

// TestRestoreBesideLog: a log that an earlier database left is never applied to the one that is restored, or made anew.
func TestRestoreBesideLog(t *testing.T) {
	other := openAt(t, filepath.Join(t.TempDir(), "server.db"))
	for i := range int64(200) {
		put(t, other, batch(fmt.Sprint("other", i%7), object(i, "what the log has")))
	}
	good := openAt(t, filepath.Join(t.TempDir(), "server.db"))
	lines := prose(0, 20, 300)
	put(t, good, batch("s", lines...))
	copied := backup(t, good)
	moved := func(path string) error { return os.Rename(path, path+".damaged") }
	cases := map[string]struct {
		before func(path string) error
		force  bool
	}{
		"moved away":         {moved, false},
		"moved away, forced": {moved, true},
		"removed":            {os.Remove, false},
		"emptied":            {func(path string) error { return os.Truncate(path, 0) }, false},
		"overwritten":        {func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("x"), 9000), 0o600) }, true},
		"cut":                {func(path string) error { return os.Truncate(path, 5000) }, true},
		"whole":              {func(string) error { return nil }, true},
		"with a journal": {func(path string) error {
			return errors.Join(moved(path), os.Rename(path+"-wal", path+"-journal"))
		}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := killed(t, other)
			kit.Must(t, c.before(path))
			kit.Must(t, sqlite.Restore(t.Context(), path, bytes.NewReader(copied), c.force, ""))
			r := openAt(t, path)
			kit.Must(t, r.Check(t.Context(), func(problem string) { t.Error(problem) }))
			kit.Equal(t, "lines of 20", dump(t, openSession(t, r, "s"), 0), listed(lines))
		})
	}
	t.Run("no restore", func(t *testing.T) {
		path := killed(t, other)
		kit.Must(t, moved(path))
		r := openAt(t, path)
		put(t, r, batch("s", lines...))
		kit.Should(t, r.Check(t.Context(), func(problem string) { t.Error(problem) }))
		kit.Equal(t, "lines of 20", len(dump(t, openSession(t, r, "s"), 0)), 20)
	})
}

// TestRestoreMeanwhile: a database that appears while a backup is read is not replaced unasked.
func TestRestoreMeanwhile(t *testing.T) {
	good := openAt(t, filepath.Join(t.TempDir(), "server.db"))
	put(t, good, batch("s", object(0, "x")))
	copied := backup(t, good)
	path := filepath.Join(t.TempDir(), "server.db")
	begun := false
	from := reads(func(p []byte) (int, error) {
		if !begun {
			begun = true
			s := openAt(t, path)
			put(t, s, batch("new", object(0, "x")))
			kit.Should(t, s.Close())
		}
		return 0, io.EOF
	})
	err := sqlite.Restore(t.Context(), path, io.MultiReader(bytes.NewReader(copied), from), false, "")
	kit.Check(t, errors.Is(err, fs.ErrExist), "restored over what appeared: %v", err)
	expectNames(t, "what appeared", names(t, openAt(t, path), all, server.SessionQuery{}), "new")
}

type reads func([]byte) (int, error)

func (r reads) Read(p []byte) (int, error) { return r(p) }
