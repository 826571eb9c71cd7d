package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/e2e/kit"
)

// Each named step of a write fails whole: nothing happened, on disk or in memory, and the same write passes afterwards.
func TestStepsFailWhole(t *testing.T) {
	failing := ""
	s := open(t, Options{Fault: func(step string) error { return kit.If[error](step == failing, errInjected, nil) }})
	put(t, s, 10, "a", "b")
	for step, do := range map[string]func() error{
		"put row":    func() error { return s.putRows(t.Context(), 20, "b", "c") },
		"delete row": func() error { return s.deleteRows(t.Context(), "a") },
		"put meta":   func() error { return s.PutMeta(t.Context(), "name", []byte("v")) },
		"commit":     func() error { return s.putRows(t.Context(), 5, "d") },
	} {
		before := []any{dump(t, s), s.held()}
		failing = step
		kit.Err(t, step, errInjected)(do())
		diff := cmp.Diff(before, []any{dump(t, s), s.held()})
		kit.Check(t, diff == "", "%s failed, and yet:\n%s", step, diff)
		failing = ""
		kit.Err(t, step, nil)(do())
		kit.Check(t, !cmp.Equal(before, []any{dump(t, s), s.held()}), "%s wrote nothing in the end", step)
	}
}

// After a commit of which only the answer failed the disk has it, and memory follows the disk: at once, or before the
// next write if the file cannot be read now.
func TestMemoryFollowsAHalfFailedCommit(t *testing.T) {
	for _, unreadable := range []bool{false, true} {
		fails := false
		s := open(t, Options{Fault: func(step string) error { return kit.If[error](step == "commit sync" && fails, errInjected, nil) }})
		put(t, s, 10, "a")
		fails, s.owner.unreadable = true, unreadable
		err := s.putRows(t.Context(), 7, "a", "b")
		kit.Require(t, errors.Is(err, errInjected), "%v", err)
		fails, s.owner.unreadable = false, false
		got := s.held()
		kit.Check(t, unreadable || got["a"] == 7 && got["b"] == 7, "the file has the rows, memory has %v", got)
		kit.Must(t, s.Update(t.Context(), 0, func(tx *Tx) error {
			kit.Equal(t, "memory of the next transaction", s.held()["b"], 7)
			return tx.Put("put row", tx.Bucket(BucketMeta), []byte("x"), nil)
		}))
		checkMemory(t, s)
		kit.Should(t, Check(t.Context(), s.opt.Path))
	}
}

// A transaction begins only at the root that the last one left: neither behind one of another writer, nor at an older
// one.
func TestRootOfAnother(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, s store){
		"newer": func(t *testing.T, s store) {
			err := s.bolt.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(rows)).Put([]byte("b"), value("b", 7)) })
			kit.Must(t, err)
		},
		"older": func(t *testing.T, s store) {
			b := kit.Try(os.ReadFile(s.opt.Path)).Must(t)
			newer := int64(0)
			if binary.NativeEndian.Uint64(b[4096+64:]) > binary.NativeEndian.Uint64(b[64:]) {
				newer = 4096
			}
			overwrite(t, s.opt.Path, newer, make([]byte, 4096))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := kit.Try(tryOpen(t.Context(), Options{FreeDisk: plenty, Path: filepath.Join(t.TempDir(), "state.db")})).Must(t)
			put(t, s, 10, "a")
			change(t, s)
			kit.Err(t, "the write", ErrCorrupt)(s.putRows(t.Context(), 10, "c"))
			kit.Err(t, "the next write", ErrCorrupt)(s.putRows(t.Context(), 10, "c"))
			_ = s.Close() // it may have given up
		})
	}
}

func TestKeys(t *testing.T) {
	s := open(t, Options{})
	all := append(names("a", 300), names("b", 3)...)
	put(t, s, 100, all...)
	kit.Must(t, s.Update(t.Context(), 0, func(tx *Tx) error {
		var got []string
		for _, k := range Keys(tx.Bucket(rows), []byte("a")) {
			got = append(got, string(k))
		}
		kit.Same(t, "differs", cmp.Diff(all[:300], got))
		return nil
	}))
}

// The disk may not have a commit that failed, although it was read back for a while: what bbolt holds in memory is of
// no use then. It would write over pages that are in use.
func TestCommitThatTheDiskDoesNotKeep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	var roots []byte // as they were before
	s := open(t, Options{Path: path, Fault: func(step string) error {
		if step != "commit sync" || roots == nil {
			return nil
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteAt(roots, 0)
			err = errors.Join(err, f.Close())
		}
		return errors.Join(errInjected, err)
	}})
	for i := range 40 {
		put(t, s, 3000, fmt.Sprint("row ", i))
	}
	for round := range 5 {
		before := make([]byte, 2*os.Getpagesize())
		f, err := os.Open(path)
		if err == nil {
			_, err = f.ReadAt(before, 0)
			err = errors.Join(err, f.Close())
		}
		kit.Must(t, err)
		roots = before
		err = s.putRows(t.Context(), 2000, "row 1", "row 20", "row 30")
		kit.Require(t, errors.Is(err, errInjected), "%v", err)
		roots = nil
		kit.Equal(t, fmt.Sprintf("round %d: memory has what the file lacks", round), s.held()["row 20"], 3000)
		for i := range 20 {
			put(t, s, 3000, fmt.Sprint("row ", i))
		}
	}
	closeNow(t, s)
	kit.Must(t, Check(t.Context(), path))
	if s = open(t, Options{Path: path}); s.SetAside() != "" || len(s.held()) != 40 {
		t.Errorf("%d rows of 40, set aside as %q", len(s.held()), s.SetAside())
	}
}
