package state

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// drained makes a state with a drained backlog and a few rows left, and answers its content.
func drained(t *testing.T, opt Options) (*DB, map[string]string) {
	t.Helper()
	db := open(t, opt)
	var steps []Step
	for i := range int64(40) {
		steps = append(steps, advance(1, i, i+1, 100_000))
	}
	settle(t, db, 1, commit(t, db, steps...)...)
	commit(t, db, advance(2, 0, 3, 100), advance(3, 0, 3, 100))
	return db, dump(t, db)
}

func TestCompaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	db, want := drained(t, Options{Path: path, CompactAbove: 1 << 20})
	if !db.compactionDue() {
		t.Fatal("not due")
	}
	before, _, _ := db.liveSize()
	if err := db.compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, live, _ := db.liveSize()
	if after > before/10 || live > after || db.compactionDue() {
		t.Errorf("%d bytes, then %d, %d of them in use", before, after, live)
	}
	if diff := cmp.Diff(want, dump(t, db)); diff != "" {
		t.Error(diff)
	}
	seqs := commit(t, db, advance(2, 3, 4, 10))
	closeNow(t, db)
	db = open(t, Options{Path: path})
	if got := commit(t, db, advance(2, 4, 5, 10)); got[0] != seqs[0]+1 {
		t.Errorf("seq %d after %d", got[0], seqs[0])
	}
}

// Compaction interrupted at any step loses nothing: the state goes on as it is, and so does one opened afterwards.
func TestCompactionInterrupted(t *testing.T) {
	for _, step := range []string{"compact copy", "compact sync", "compact close", "compact rename", "compact sync dir", "compact reopen"} {
		t.Run(step, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state.db")
			crashed := filepath.Join(t.TempDir(), "state.db")
			interrupted := false
			db, want := drained(t, Options{Path: path, Fault: func(at string) error {
				if at != step || interrupted {
					return nil
				}
				interrupted = true
				copyFiles(t, path, crashed) // what a crash right here leaves on the disk
				return errInjected
			}})
			if err := db.compact(t.Context()); !errors.Is(err, errInjected) {
				t.Fatal(err)
			}
			after := open(t, Options{Path: crashed})
			if diff := cmp.Diff(want, dump(t, after)); diff != "" || len(after.Notices()) != 0 {
				t.Errorf("after a crash: %v %s", after.Notices(), diff)
			}
			if diff := cmp.Diff(want, dump(t, db)); diff != "" {
				t.Error(diff)
			}
			commit(t, db, advance(2, 3, 4, 10))
			if err := db.compact(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// copyFiles copies a state and what lies aside.
func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	for _, suffix := range []string{"", suffixAside} {
		b, err := os.ReadFile(from + suffix)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(to+suffix, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestLeftoversAreRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	for _, suffix := range []string{suffixNew, suffixAside} {
		if err := os.WriteFile(path+suffix, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open(t, Options{Path: path})
	for _, suffix := range []string{suffixNew, suffixAside} {
		if _, err := os.Stat(path + suffix); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", suffix, err)
		}
	}
}

func TestRunCompacts(t *testing.T) {
	db, want := drained(t, Options{CompactAbove: 1 << 20})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- db.Run(ctx) }()
	waitFor(t, "compaction", func() bool { size, _, _ := db.liveSize(); return size < 1<<20 })
	if diff := cmp.Diff(want, dump(t, db)); diff != "" {
		t.Error(diff)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A drained backlog does not make the commits after it dear: with a free list on disk each would write it whole.
func TestCommitsStaySmallAfterABacklog(t *testing.T) {
	db, _ := drained(t, Options{})
	before := db.bolt.Stats().TxStats
	const n = 20
	for i := range int64(n) {
		commit(t, db, advance(2, 3+i, 4+i, 500))
	}
	after := db.bolt.Stats().TxStats
	if each := (after.GetPageAlloc() - before.GetPageAlloc()) / n; each > 40<<10 {
		t.Errorf("%d bytes a commit", each)
	} else {
		t.Logf("%d bytes a commit", each)
	}
}
