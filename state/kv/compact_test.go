package kv

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
)

// drained makes a file with a drained backlog and a few rows left, and answers its content.
func drained(t *testing.T, opt Options) (store, map[string]string) {
	t.Helper()
	opt.Drained = func() bool { return true }
	s := open(t, opt)
	backlog := names("backlog", 40)
	put(t, s, 100_000, backlog...)
	kit.Must(t, s.deleteRows(t.Context(), backlog...))
	put(t, s, 100, "a", "b")
	return s, dump(t, s)
}

func TestCompaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, want := drained(t, Options{Path: path, CompactAbove: 1 << 20})
	kit.Require(t, s.compactionDue(), "not due")
	before, _, _ := s.liveSize()
	kit.Must(t, s.Compact(t.Context()))
	after, live, _ := s.liveSize()
	kit.Check(t, after <= before/10 && live <= after && !s.compactionDue(), "%d bytes, then %d, %d of them in use",
		before, after, live)
	diff := cmp.Diff(want, dump(t, s))
	kit.Check(t, diff == "", "%v", diff)
	put(t, s, 10, "c")
	s = reopen(t, s, path)
	diff = cmp.Diff(map[string]int{"a": 100, "b": 100, "c": 10}, s.held())
	kit.Check(t, diff == "", "%v", diff)
}

// Compaction interrupted at any step loses nothing: the file goes on as it is, and so does one opened afterwards.
func TestCompactionInterrupted(t *testing.T) {
	for _, step := range []string{
		"compact copy", "compact sync", "compact close", "compact rename", "compact sync dir", "compact reopen",
	} {
		t.Run(step, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state.db")
			crashed := filepath.Join(t.TempDir(), "state.db")
			interrupted := false
			s, want := drained(t, Options{Path: path, Fault: func(at string) error {
				if at != step || interrupted {
					return nil
				}
				interrupted = true
				copyFiles(t, path, crashed) // what a crash right here leaves on the disk
				return errInjected
			}})
			err := s.Compact(t.Context())
			kit.Require(t, errors.Is(err, errInjected), "%v", err)
			after := open(t, Options{Path: crashed})
			if diff := cmp.Diff(want, dump(t, after)); diff != "" || after.SetAside() != "" {
				t.Errorf("after a crash: %v %s", after.SetAside(), diff)
			}
			kit.Same(t, "differs", cmp.Diff(want, dump(t, s)))
			put(t, s, 10, "c")
			kit.Should(t, s.Compact(t.Context()))
		})
	}
}

// Without a durable name the new file takes no commit: a power cut could bring the old one back.
func TestCompactionIsDurableBeforeCommits(t *testing.T) {
	s, want := drained(t, Options{})
	broken, synced := true, 0
	s.syncDir = func(dir string) error {
		kit.Equal(t, "is synced", dir, filepath.Dir(s.opt.Path))
		if synced++; broken {
			return errInjected
		}
		return nil
	}
	kit.Err(t, "compaction", errInjected)(s.Compact(t.Context()))
	kit.Err(t, "a commit to it", errInjected)(s.putRows(t.Context(), 10, "c"))
	broken = false
	diff := cmp.Diff(want, dump(t, s))
	kit.Check(t, diff == "" && synced >= 2, "%d syncs %s", synced, diff)
	put(t, s, 10, "c")
}

// copyFiles copies a file and what lies aside.
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
		kit.Must(t, err)
	}
}

func TestLeftoversAreRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	for _, suffix := range []string{suffixNew, suffixAside} {
		kit.Must(t, os.WriteFile(path+suffix, []byte("half"), 0o600))
	}
	open(t, Options{Path: path})
	for _, suffix := range []string{suffixNew, suffixAside} {
		kit.Err(t, suffix, os.ErrNotExist)(os.Stat(path + suffix))
	}
}

// run runs the background work until the end of the test.
func run(t *testing.T, s store) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx, func() bool { return false }) }()
	return func() {
		cancel()
		kit.Should(t, <-ended)
	}
}

func TestRunCompacts(t *testing.T) {
	s, want := drained(t, Options{CompactAbove: 1 << 20})
	stop := run(t, s)
	waitFor(t, "compaction", func() bool { size, _, _ := s.liveSize(); return size < 1<<20 })
	kit.Same(t, "differs", cmp.Diff(want, dump(t, s)))
	stop()
}

// A drained backlog does not make the commits after it dear: with a free list on disk each would write it whole.
func TestCommitsStaySmallAfterABacklog(t *testing.T) {
	s, _ := drained(t, Options{})
	before := s.bolt.Stats().TxStats
	const n = 20
	for _, key := range names("c", n) {
		put(t, s, 500, key)
	}
	after := s.bolt.Stats().TxStats
	if each := (after.GetPageAlloc() - before.GetPageAlloc()) / n; each > 40<<10 {
		t.Errorf("%d bytes a commit", each)
	} else {
		t.Logf("%d bytes a commit", each)
	}
}
