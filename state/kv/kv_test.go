package kv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/e2e/kit"
)

// plenty is a disk that is never full.
func plenty(string) (free, total uint64, err error) { return 1 << 40, 1 << 41, nil }

// owner keeps the sizes of all rows of the bucket rows in memory.
type owner struct {
	mu         sync.Mutex
	sizes      map[string]int
	unreadable bool // Load fails
}

const rows = "rows"

func (o *owner) Load(tx *Snapshot) error {
	if o.unreadable {
		return errInjected
	}
	sizes := map[string]int{}
	err := tx.Bucket(rows).ForEach(func(k, v []byte) error {
		v, err := Unseal(k, v, 1)
		sizes[string(k)] = len(v)
		return err
	})
	if err == nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.sizes = sizes
	}
	return err
}

func (o *owner) Begin(tx *Tx) Changes { return &changes{o: o, tx: tx, put: map[string]int{}} }

// changes of an owner: what was put; -1: deleted.
type changes struct {
	o   *owner
	tx  *Tx
	put map[string]int
}

func (c *changes) Finish() error { return nil }

func (c *changes) Apply() {
	c.o.mu.Lock()
	defer c.o.mu.Unlock()
	for k, size := range c.put {
		if c.o.sizes[k] = size; size < 0 {
			delete(c.o.sizes, k)
		}
	}
}

// store is an open file with its owner.
type store struct {
	*DB
	owner *owner
}

// open opens the file of opt, closes it at the end, and checks then that memory and file agree.
func open(t testing.TB, opt Options) store {
	t.Helper()
	if opt.Path == "" {
		opt.Path = filepath.Join(t.TempDir(), "state", "state.db")
	}
	if opt.FreeDisk == nil {
		opt.FreeDisk = plenty
	}
	s := kit.Try(tryOpen(t.Context(), opt)).Must(t)
	t.Cleanup(func() { closeNow(t, s) })
	return s
}

func tryOpen(ctx context.Context, opt Options) (store, error) {
	s := store{owner: &owner{}}
	if opt.Schema.Buckets == nil {
		opt.Schema = Schema{Buckets: []string{rows}, Version: 2}
	}
	opt.Memory = []Memory{s.owner}
	var err error
	s.DB, err = Open(ctx, opt)
	return s, err
}

// closeNow closes a file; one that is closed already stays so.
func closeNow(t testing.TB, s store) {
	t.Helper()
	checkMemory(t, s)
	kit.Should(t, s.Close())
}

func openAt(t testing.TB) (s store, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "state.db")
	return open(t, Options{Path: path}), path
}

func reopen(t testing.TB, s store, path string) store {
	t.Helper()
	closeNow(t, s)
	return open(t, Options{Path: path})
}

// checkMemory compares what the owner has in memory with what the file says.
func checkMemory(t testing.TB, s store) {
	t.Helper()
	if s.failure() != nil {
		return
	}
	fresh := &owner{}
	err := s.viewQuietly(fresh.Load)
	if errors.Is(err, ErrClosed) {
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	kit.Same(t, "memory differs from the file", cmp.Diff(fresh.sizes, s.owner.sizes))
}

func value(key string, size int) []byte {
	return Seal([]byte(key), append(NewSealed(1, size), strings.Repeat("v", size)...))
}

// putRows stores rows of a size in one transaction.
func (s store) putRows(ctx context.Context, size int, keys ...string) error {
	return s.Update(ctx, int64(size*len(keys)), func(tx *Tx) error {
		for _, key := range keys {
			if err := tx.Put("put row", tx.Bucket(rows), []byte(key), value(key, size)); err != nil {
				return err
			}
			tx.Changes(s.owner).(*changes).put[key] = size
			tx.Moved(int64(size))
		}
		return nil
	})
}

// deleteRows removes rows in one transaction.
func (s store) deleteRows(ctx context.Context, keys ...string) error {
	return s.Update(ctx, 0, func(tx *Tx) error {
		for _, key := range keys {
			if err := tx.Delete("delete row", tx.Bucket(rows), []byte(key)); err != nil {
				return err
			}
			tx.Changes(s.owner).(*changes).put[key] = -1
		}
		return nil
	})
}

func put(t testing.TB, s store, size int, keys ...string) {
	t.Helper()
	kit.Must(t, s.putRows(context.Background(), size, keys...))
}

// names makes so many keys.
func names(prefix string, n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprintf("%s%05d", prefix, i))
	}
	return keys
}

// held answers the sizes that the owner has in memory.
func (s store) held() map[string]int {
	return kit.Under(&s.owner.mu, func() map[string]int { return maps.Clone(s.owner.sizes) })
}

// dump is the whole content of the file.
func dump(t testing.TB, s store) map[string]string {
	t.Helper()
	all := map[string]string{}
	kit.Must(t, s.viewQuietly(func(tx *Snapshot) error {
		return tx.bolt.ForEach(func(name []byte, b *bbolt.Bucket) error {
			all[string(name)] = fmt.Sprint(b.Sequence())
			return b.ForEach(func(k, v []byte) error {
				all[string(name)+"/"+string(k)] = string(v)
				return nil
			})
		})
	}))
	return all
}

var errInjected = errors.New("injected")

// waitFor polls until a condition holds.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick, deadline := time.NewTicker(time.Millisecond), time.After(2*time.Minute)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
