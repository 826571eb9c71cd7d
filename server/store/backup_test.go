package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
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
			if got := dump(t, snap, 0); len(got)%2 != 0 || int64(len(got)) != snap.Session().Lines {
				t.Errorf("%d lines of %d", len(got), snap.Session().Lines)
			}
			snap.Close()
		}
		k, err := r.FindKey(t.Context(), hash)
		kit.Check(t, err == nil && k.User == ann, "%+v, %v", k, err)
		if views, err := r.SavedViews(t.Context(), ann.ID); err != nil || len(views) != 1 || views[0].Query != "view=failed" {
			t.Errorf("saved views in a copy: %+v, %v", views, err)
		}
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
