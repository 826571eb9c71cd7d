package kv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/e2e/kit"
)

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
