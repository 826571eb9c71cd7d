package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/e2e/kit"
)

// filled makes a file with a few pages of every kind, and answers its path.
func filled(t *testing.T) string {
	t.Helper()
	s, path := openAt(t)
	for i, key := range names("row", 300) {
		put(t, s, i*20, key)
	}
	closeNow(t, s)
	return path
}

// usedBytes reads the part of a state that has pages; bbolt makes the file longer.
func usedBytes(t *testing.T, path string) []byte {
	t.Helper()
	f := kit.Try(os.Open(path)).Must(t)
	defer f.Close()
	m := kit.Try(newestMeta(f)).Must(t)
	b := make([]byte, m.pages*m.pageSize)
	kit.Try(f.ReadAt(b, 0)).Must(t)
	return b
}

// Each rule of the check is broken in turn, where bbolt itself might not mind.
func TestCheckRefuses(t *testing.T) {
	path := filled(t)
	whole := usedBytes(t, path)
	n := binary.NativeEndian
	branch := 0 // a page that points to others
	for at := 2 * 4096; at < len(whole) && branch == 0; at += 4096 {
		p := whole[at:]
		is := n.Uint64(p) == uint64(at/4096) && n.Uint16(p[8:]) == flagBranch && n.Uint16(p[10:]) > 2
		if is && checkReaches(t, whole, at) {
			branch = at
		}
	}
	kit.Require(t, branch != 0, "no branch page in the sample")
	for what, damage := range map[string]func(p []byte){
		"it is used twice":           func(p []byte) { copy(p[32+8:32+16], p[16+8:16+16]) },
		"it ends outside the file":   func(p []byte) { n.PutUint32(p[12:], 1<<31) },
		"it lies outside the file":   func(p []byte) { n.PutUint64(p[16+8:], 1<<40) },
		"it has another number":      func(p []byte) { n.PutUint64(p, 1) },
		"its kind is unknown":        func(p []byte) { n.PutUint16(p[8:], 3) },
		"it has too many elements":   func(p []byte) { n.PutUint16(p[10:], 1<<15) },
		"it branches to nothing":     func(p []byte) { n.PutUint16(p[10:], 0) },
		"an element lies outside it": func(p []byte) { n.PutUint32(p[16+4:], 900); n.PutUint32(p[16:], 4000) },
		"its keys are out of order":  func(p []byte) { p[16+n.Uint32(p[16:])] = 0xff },
	} {
		b := append([]byte(nil), whole...)
		damage(b[branch : branch+4096])
		err := checkBytes(t, b)
		kit.Check(t, errors.Is(err, ErrCorrupt) && strings.Contains(err.Error(), what), "%s: %v", what, err)
	}
}

// checkReaches says whether a page is in use: damage to it is seen.
func checkReaches(t *testing.T, whole []byte, at int) bool {
	t.Helper()
	b := append([]byte(nil), whole...)
	b[at] ^= 1
	return checkBytes(t, b) != nil
}

func checkBytes(t *testing.T, b []byte) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "damaged.db")
	kit.Must(t, os.WriteFile(path, b, 0o600))
	return checkFile(path)
}

// The check of the pages knows bbolt's format: what bbolt writes must pass, whatever its shape.
func TestCheckPassesWhatBboltWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "any.db")
	b, _, err := openBolt(path, 0)
	kit.Must(t, err)
	defer b.Close()
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		kit.Must(t, b.Update(func(tx *bbolt.Tx) error {
			top, err := tx.CreateBucketIfNotExists([]byte{byte(round % 3)})
			if err != nil {
				return err
			}
			inner, err := top.CreateBucketIfNotExists([]byte("inner"))
			if err != nil {
				return err
			}
			for range 200 {
				key := make([]byte, 1+rnd.IntN(300))
				key[0] = byte(rnd.IntN(8))
				bucket := []*bbolt.Bucket{top, inner}[rnd.IntN(2)]
				if rnd.IntN(3) == 0 {
					k, _ := bucket.Cursor().Seek(key)
					if k != nil && string(k) != "inner" {
						if err := bucket.Delete(append([]byte(nil), k...)); err != nil {
							return err
						}
					}
				} else if err := bucket.Put(key, make([]byte, rnd.IntN(1+rnd.IntN(9000)))); err != nil {
					return err
				}
			}
			return nil
		}))
		err := checkFile(path)
		kit.Require(t, err == nil, "round %d: %v", round, err)
	}
}

func TestCheck(t *testing.T) {
	path := filled(t)
	kit.Err(t, "a whole state", nil)(Check(t.Context(), path))
	kit.Err(t, "no state", fs.ErrNotExist)(Check(t.Context(), filepath.Join(t.TempDir(), "none")))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	err := Check(over, path)
	kit.Check(t, errors.Is(err, context.Canceled) && !errors.Is(err, ErrCorrupt), "no time: %v", err)
	kit.Must(t, os.WriteFile(path+suffixBroken, []byte("page 7: gone\n"), 0o600))
	err = Check(t.Context(), path)
	kit.Check(t, errors.Is(err, ErrCorrupt) && strings.Contains(err.Error(), "page 7: gone"), "found while in use: %v", err)
	kit.Must(t, os.Remove(path+suffixBroken))
	b := usedBytes(t, path)
	clear(b[8192:])
	kit.Must(t, os.WriteFile(path, b, 0o600))
	kit.Err(t, "pages zeroed", ErrCorrupt)(Check(t.Context(), path))
}

// A state that is written to at the same time is whole, and its writer waits for nobody.
func TestCheckInUse(t *testing.T) {
	path := filled(t)
	s := open(t, Options{Path: path})
	var writing sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer writing.Wait()
	defer stop()
	wrote := make(chan struct{}, 1)
	writing.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if err := s.putRows(ctx, 300, fmt.Sprintf("more%d", i)); err != nil && ctx.Err() == nil {
				t.Errorf("commit: %v", err)
				return
			}
			select {
			case wrote <- struct{}{}:
			default:
			}
		}
	})
	for range 300 {
		<-wrote
		err := Check(t.Context(), path)
		kit.Require(t, err == nil, "while it is written to: %v", err)
	}
}
