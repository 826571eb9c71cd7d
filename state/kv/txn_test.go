package kv

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"
)

// Each named step of a write fails whole: nothing happened, on disk or in memory, and the same write passes afterwards.
func TestStepsFailWhole(t *testing.T) {
	failing := ""
	s := open(t, Options{Fault: func(step string) error {
		if step == failing {
			return errInjected
		}
		return nil
	}})
	put(t, s, 10, "a", "b")
	for step, do := range map[string]func() error{
		"put row":    func() error { return s.putRows(t.Context(), 20, "b", "c") },
		"delete row": func() error { return s.deleteRows(t.Context(), "a") },
		"put meta":   func() error { return s.PutMeta(t.Context(), "name", []byte("v")) },
		"commit":     func() error { return s.putRows(t.Context(), 5, "d") },
	} {
		before := []any{dump(t, s), s.held()}
		failing = step
		if err := do(); !errors.Is(err, errInjected) {
			t.Errorf("%s: %v", step, err)
		}
		if diff := cmp.Diff(before, []any{dump(t, s), s.held()}); diff != "" {
			t.Errorf("%s failed, and yet:\n%s", step, diff)
		}
		failing = ""
		if err := do(); err != nil {
			t.Errorf("%s: %v", step, err)
		}
		if cmp.Equal(before, []any{dump(t, s), s.held()}) {
			t.Errorf("%s wrote nothing in the end", step)
		}
	}
}

// After a commit that failed half-way the disk may or may not have it. Memory follows the disk.
func TestMemoryFollowsAHalfFailedCommit(t *testing.T) {
	s := open(t, Options{})
	put(t, s, 10, "a")
	b, release, err := s.acquire()
	if err != nil {
		t.Fatal(err)
	}
	release()
	// The root is written and then its fsync fails: as if another had committed behind the owner's back.
	err = b.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(rows)).Put([]byte("b"), value("b", 7)) })
	if err != nil {
		t.Fatal(err)
	}
	s.group.write.Lock()
	s.stale = true
	s.group.write.Unlock()
	err = s.Update(t.Context(), 0, func(tx *Tx) error {
		if got := s.held(); got["b"] != 7 {
			t.Errorf("memory of the next transaction: %v", got)
		}
		return tx.Delete("delete row", tx.Bucket(rows), []byte("none"))
	})
	if err != nil {
		t.Fatal(err)
	}
	checkMemory(t, s)
}

func TestKeys(t *testing.T) {
	s := open(t, Options{})
	all := append(names("a", 300), names("b", 3)...)
	put(t, s, 100, all...)
	err := s.Update(t.Context(), 0, func(tx *Tx) error {
		var got []string
		for _, k := range Keys(tx.Bucket(rows), []byte("a")) {
			got = append(got, string(k))
		}
		if diff := cmp.Diff(all[:300], got); diff != "" {
			t.Error(diff)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
