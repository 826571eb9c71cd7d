package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/sqlite"
)

// backup copies a store while other lines come in.
func backup(t *testing.T, s *sqlite.Store) []byte {
	t.Helper()
	var out bytes.Buffer
	var done, total int64
	meddling := writes(func(p []byte) (int, error) { // in the middle of it, once
		if out.Len() == 0 {
			put(t, s, batch("s", object(0, "meddled"), object(1, strings.Repeat("y", 100_000))))
		}
		return out.Write(p)
	})
	kit.Must(t, s.Backup(t.Context(), meddling, func(d, n int64) {
		kit.Check(t, d >= done && d <= n, "%d of %d comes after %d", d, n, done)
		done, total = d, n
	}))
	kit.Check(t, done == total && done == int64(out.Len()), "%d bytes, but told %d of %d", out.Len(), done, total)
	return out.Bytes()
}

type writes func([]byte) (int, error)

func (w writes) Write(p []byte) (int, error) { return w(p) }

// TestBackup: a copy is of one moment and whole, whatever comes in meanwhile.
func TestBackup(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "server.db"))
	ann := addUser(t, s, "ann", server.Owner)
	_, hash := addKey(t, s, ann.ID, "laptop")
	kit.Must(t, s.SaveView(t.Context(), ann.ID, server.SavedView{Name: "Broken", Page: server.SessionsPage, Query: "view=failed"}))
	for i := range int64(300) {
		put(t, s, batch("s", object(i, says("prompt", "the needle of s"+strings.Repeat(" x", 2500)))))
	}
	deriveAll(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			// Two lines in one batch: a copy has both of them or none.
			for i := int64(0); ctx.Err() == nil; i += 2 {
				b := batch(fmt.Sprint("w", w), object(i, "x"), object(i+1, strings.Repeat("y", 20000)))
				err := s.Put(ctx, b)
				kit.Check(t, err == nil || ctx.Err() != nil, "%v", err)
			}
		})
	}
	copies := [][]byte{backup(t, s), backup(t, s)}
	cancel()
	wg.Wait()
	for i, c := range copies {
		path := filepath.Join(t.TempDir(), "new", "copy.db")
		kit.Must(t, sqlite.Restore(t.Context(), path, bytes.NewReader(c), false, ""))
		info, err := os.Stat(path)
		kit.Check(t, err == nil && (runtime.GOOS == "windows" || info.Mode().Perm() == 0o600), "%v, %v", info, err)
		r := openAt(t, path)
		kit.Should(t, r.Check(t.Context(), func(problem string) { t.Error(problem) }))
		got := dump(t, openSession(t, r, "s"), 0)
		meddled := got[0] == "0:object:meddled"
		kit.Check(t, len(got) == 300 && meddled == (i > 0), "copy %d has %d lines of 300, meddled with %v", i, len(got), meddled)
		for _, name := range []string{"w0", "w1"} {
			snap, err := r.Open(t.Context(), server.Ref{SessionID: name})
			if errors.Is(err, server.ErrNotFound) {
				continue
			}
			got := dump(t, snap, 0)
			kit.Check(t, len(got)%2 == 0 && int64(len(got)) == snap.Session().Lines, "%d lines of %d", len(got), snap.Session().Lines)
			snap.Close()
		}
		k, err := r.FindKey(t.Context(), hash)
		kit.Check(t, err == nil && k.User == ann, "%+v, %v", k, err)
		views, err := r.SavedViews(t.Context(), ann.ID)
		kit.Check(t, err == nil && len(views) == 1 && views[0].Query == "view=failed", "saved views in a copy: %+v, %v", views, err)
		want := []string{"s"}
		if i > 0 {
			want = nil // the line that said it says something else: lines decide
		}
		expectNames(t, "search in a copy", searched(t, r, all, server.SearchQuery{Text: "needle"}), want...)
		put(t, r, batch("s", object(300, "goes on")))
	}
}

var errBroken = errors.New("broken")

type broken struct{ after int }

func (b *broken) Write(p []byte) (int, error) {
	if b.after -= len(p); b.after < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func (b *broken) Read(p []byte) (int, error) {
	if b.after -= len(p); b.after < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func TestBackupBroken(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "server.db"))
	kit.Err(t, "written to what is broken", errBroken)(nil, s.Backup(t.Context(), &broken{20000}, nil))
	put(t, s, batch("s", object(0, "x"))) // no connection is left in a transaction
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	kit.Err(t, "cancelled", context.Canceled)(nil, s.Backup(ctx, &broken{1 << 30}, nil))
}

// TestRestoreRefuses: what is there stays as it is unless it is certain that it should not.
func TestRestoreRefuses(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	path := filepath.Join(dir, "server.db")
	s := openAt(t, path)
	put(t, s, batch("new", object(0, "x")))
	copied := backup(t, s)
	put(t, s, batch("newer", object(0, "x")))
	restore := func(data []byte, force bool) error {
		return sqlite.Restore(ctx, path, bytes.NewReader(data), force, "")
	}
	kit.Err(t, "over what is there", fs.ErrExist)(nil, restore(copied, false))
	kit.Err(t, "over what is in use", sqlite.ErrInUse)(nil, restore(copied, true))
	put(t, s, batch("newest", object(0, "x")))
	kit.Must(t, s.Close())
	torn := bytes.Clone(copied)
	for i := len(torn) / 3; i < len(torn)*2/3; i++ {
		torn[i] = 0x5a
	}
	for what, data := range map[string][]byte{
		"nothing": nil, "half": copied[:len(copied)/2], "text": []byte(strings.Repeat("no database ", 1000)), "torn": torn,
	} {
		kit.Err(t, what+" was taken", sqlite.ErrDamaged)(restore(data, true))
	}
	kit.Err(t, "from what is broken", errBroken)(nil, sqlite.Restore(ctx, path, &broken{1000}, true, ""))
	s = openAt(t, path)
	expectNames(t, "refused", names(t, s, all, server.SessionQuery{}), "new", "newer", "newest", "s")
	kit.Must(t, s.Close())
	kit.Must(t, restore(copied, true))
	s = openAt(t, path)
	expectNames(t, "restored", names(t, s, all, server.SessionQuery{}), "new")
	left := kit.Try(os.ReadDir(dir)).Must(t)
	for _, f := range left {
		if !strings.HasPrefix(f.Name(), "server.db") {
			t.Errorf("%s was left behind", f.Name())
		}
	}
}

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
