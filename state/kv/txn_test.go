package kv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
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

// sampleOfSum makes a file with an earlier transaction in its free pages, and answers its bytes.
func sampleOfSum(t *testing.T) []byte {
	t.Helper()
	s, path := openAt(t)
	put(t, s, 300, names("row", 90)...)
	put(t, s, 9000, "large")
	kit.Must(t, s.PutMeta(t.Context(), "name", []byte("laptop")))
	kit.Must(t, s.Update(t.Context(), 0, func(tx *Tx) error { _, err := tx.NextSequence(rows); return err }))
	kit.Must(t, s.deleteRows(t.Context(), names("row", 20)...))
	put(t, s, 300, names("row0003", 3)...)
	closeNow(t, s)
	return usedBytes(t, path)
}

// rowsOf is all that a file holds, for a reader who trusts its pages; nil: a row proves to be damaged.
func rowsOf(t *testing.T, path string) map[string]string {
	t.Helper()
	all := map[string]string{}
	b, _, err := openBolt(path, 0)
	if err != nil {
		return nil
	}
	defer b.Close()
	err = catch(func() error {
		return b.View(func(tx *bbolt.Tx) error {
			return tx.ForEach(func(name []byte, bucket *bbolt.Bucket) error {
				all[string(name)] = string(binary.BigEndian.AppendUint64(nil, bucket.Sequence()))
				return bucket.ForEach(func(k, v []byte) error {
					all[string(name)+"/"+string(k)] = string(v)
					if string(k) == keySchema {
						return nil
					}
					_, err := Unseal(k, v, 1)
					return err
				})
			})
		})
	})
	if err != nil {
		return nil
	}
	return all
}

// Every bit of the pages' structure: headers, tables of elements, buckets and keys. A file with one of them flipped
// either fails the check, or has the same rows, or a row that fails its own.
func TestAnyFlippedBitOfThePages(t *testing.T) {
	whole := sampleOfSum(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "whole.db")
	write := func(path string, b []byte) { kit.Must(t, os.WriteFile(path, b, 0o600)) }
	write(path, whole)
	want := rowsOf(t, path)
	kit.Require(t, len(want) >= 70, "%d rows", len(want))
	info := kit.Try(os.Stat(path)).Must(t)
	stat := func() (os.FileInfo, error) { return info, nil }
	used := pagesInUse(t, whole)
	value := strings.Repeat("v", 16)
	flipped, refused := 0, 0
	for at := 2 * 4096; at < len(whole); at++ {
		if page := at / 4096; used[page/64]&(1<<(page%64)) == 0 {
			continue
		}
		if near := whole[max(0, at-8):min(len(whole), at+8)]; string(near) == value || allZero(near) && at%64 != 0 {
			continue // the middle of a value, or of nothing
		}
		for bit := range 8 {
			flipped++
			whole[at] ^= 1 << bit
			if _, err := checkPages(bytes.NewReader(whole), stat); err == nil {
				damaged := filepath.Join(dir, "damaged.db")
				write(damaged, whole)
				got := rowsOf(t, damaged)
				refuses := got == nil || got["meta/"+keySum] == "" // Open does: TestSumIsMissing
				if !refuses && !maps.Equal(got, want) {
					t.Errorf("byte %d of page %d, bit %d: other rows", at%4096, at/4096, bit)
				}
			} else if refused++; !errors.Is(err, ErrCorrupt) {
				t.Errorf("byte %d bit %d: %v", at, bit, err)
			}
			whole[at] ^= 1 << bit
		}
	}
	t.Logf("%d bits flipped, %d refused", flipped, refused)
}

// pagesInUse is the set of pages that the newest root leads to.
func pagesInUse(t *testing.T, whole []byte) []uint64 {
	t.Helper()
	m := kit.Try(newestMeta(bytes.NewReader(whole))).Must(t)
	c := &checker{f: bytes.NewReader(whole), pageSize: 4096, pages: m.pages, seen: make([]uint64, m.pages/64+1)}
	kit.Must(t, c.walk(m.root, nil, nil, 0))
	return c.seen
}

func allZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// A page of an earlier transaction is whole, has its number, and its rows have the right checksums.
func TestPageOfAnEarlierTransaction(t *testing.T) {
	s, path := openAt(t)
	put(t, s, 300, names("row", 90)...)
	put(t, s, 301, "row00000")
	closeNow(t, s)
	whole := usedBytes(t, path)
	at := bytes.LastIndex(whole, append([]byte("row00000"), value("row00000", 300)...)) / 4096
	now := bytes.LastIndex(whole, append([]byte("row00000"), value("row00000", 301)...)) / 4096
	old, page := bytes.Clone(whole[at*4096:(at+1)*4096]), whole[now*4096:]
	if at < 2 || now < 2 || at == now || binary.NativeEndian.Uint16(old[10:]) != binary.NativeEndian.Uint16(page[10:]) {
		t.Fatalf("pages %d and %d", at, now)
	}
	binary.NativeEndian.PutUint64(old, uint64(now))
	copy(page, old)
	err := checkBytes(t, whole)
	kit.Check(t, errors.Is(err, ErrCorrupt) && strings.Contains(err.Error(), "its rows are not those"), "%v", err)
}

// A row that went away under the running process, with its page, is missed by a compaction and at the next start.
func TestRowLostInUse(t *testing.T) {
	s, path := openAt(t)
	put(t, s, 10, names("row", 20)...)
	err := s.Update(t.Context(), 0, func(tx *Tx) error {
		tx.dirty = true
		return tx.Bucket(rows).Delete([]byte("row00007")) // as bbolt would see it
	})
	kit.Must(t, err)
	put(t, s, 10, "more")
	if err := s.Compact(t.Context()); !errors.Is(err, ErrCorrupt) || !errors.Is(s.failure(), ErrCorrupt) {
		t.Errorf("compaction: %v, then %v", err, s.failure())
	}
	s = reopen(t, s, path)
	kit.Check(t, s.SetAside() != "", "nothing was noticed")
}

// The sum follows what transactions do: rows put twice, put and removed, numbers, and transactions that fail.
func TestSumFollows(t *testing.T) {
	s, path := openAt(t)
	put(t, s, 10, "a", "a", "b", "c")
	put(t, s, 20, "a")
	steps := []func(tx *Tx) error{
		func(tx *Tx) error { return tx.Delete("none", tx.Bucket(rows), []byte("none")) },
		func(tx *Tx) error { return tx.Put("empty", tx.Bucket(BucketMeta), []byte("empty"), nil) },
		func(tx *Tx) error {
			b := tx.Bucket(BucketMeta)
			return errors.Join(tx.Put("empty", b, []byte("empty"), nil), tx.Delete("empty", b, []byte("empty")))
		},
		func(tx *Tx) error { _, err := tx.NextSequence(rows); return err },
		func(tx *Tx) error {
			_, err := tx.NextSequence(rows)
			return errors.Join(err, tx.Put("put", tx.Bucket(rows), []byte("a"), value("a", 30)), errInjected)
		},
	}
	for i, step := range steps {
		err := s.Update(t.Context(), 0, step)
		kit.Require(t, err == nil || errors.Is(err, errInjected), "%v", err)
		err = Check(t.Context(), path)
		kit.Require(t, err == nil, "after step %d: %v", i, err)
	}
	kit.Must(t, s.deleteRows(t.Context(), "a", "b"))
	kit.Must(t, s.Compact(t.Context()))
	put(t, s, 10, "d")
	closeNow(t, s)
	if s = open(t, Options{Path: path}); s.SetAside() != "" || dump(t, s)[rows] != "1" {
		t.Errorf("set aside %q, sequence %s", s.SetAside(), dump(t, s)[rows])
	}
}

// A file must have its sum.
func TestSumIsMissing(t *testing.T) {
	s, path := openAt(t)
	put(t, s, 10, "a")
	closeNow(t, s)
	b, _, err := openBolt(path, 0)
	kit.Must(t, err)
	err = b.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(BucketMeta)).Delete([]byte(keySum)) })
	kit.Must(t, errors.Join(err, b.Close()))
	s = open(t, Options{Path: path})
	kit.Check(t, s.SetAside() != "", "a file without its sum is taken")
}
