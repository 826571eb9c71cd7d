package kv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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

// TestGrowth: a small file looks small, and a large one does not grow in small steps: each costs a sync.
func TestGrowth(t *testing.T) {
	s := open(t, Options{})
	put(t, s, 100, "a")
	size := s.FileSize()
	kit.Check(t, size != 0 && size <= 2<<20, "a file with one row has %d bytes", size)
	grown, last := 0, s.FileSize()
	for i := range 64 {
		put(t, s, 1<<20, fmt.Sprint("row", i))
		if size := s.FileSize(); size != last {
			grown, last = grown+1, size
		}
	}
	kit.Check(t, last >= 64<<20 && last <= 64<<20+2*mostGrowth, "64 MiB of rows lie in a file of %d bytes", last)
	kit.Check(t, grown <= 16, "it grew %d times", grown)
}

func TestLocked(t *testing.T) {
	s := open(t, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // instead of three seconds
	defer cancel()
	kit.Err(t, "second open", ErrLocked)(tryOpen(ctx, Options{Path: s.opt.Path}))
}

// A caller that must not wait for another process gets the error at once.
func TestNoWait(t *testing.T) {
	s, path := openAt(t)
	synctest.Test(t, func(t *testing.T) { // in its time only waiting takes any
		for noWait, want := range map[bool]time.Duration{true: 0, false: lockWait} {
			begun := time.Now()
			_, err := tryOpen(t.Context(), Options{Path: path, NoWait: noWait})
			kit.Check(t, errors.Is(err, ErrLocked), "%v, want %v", err, ErrLocked)
			kit.Equal(t, fmt.Sprintf("no wait %t: it waited", noWait), time.Since(begun), want)
		}
	})
	closeNow(t, s)
	open(t, Options{Path: path, NoWait: true})
}

func TestModes(t *testing.T) {
	s := open(t, Options{Path: filepath.Join(t.TempDir(), "a", "b", "state.db")})
	for path, want := range map[string]os.FileMode{
		filepath.Dir(s.opt.Path): 0o700 | os.ModeDir, s.opt.Path: 0o600, s.opt.Path + suffixLock: 0o600,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	_, err := tryOpen(t.Context(), Options{Path: filepath.Dir(s.opt.Path)})
	kit.Check(t, err != nil && !errors.Is(err, ErrCorrupt), "a folder in its place: %v", err)
}

// Only two damaged files are kept, and each new one begins a new epoch.
func TestDamageFoundInUse(t *testing.T) {
	s, path := openAt(t)
	for range 4 {
		epoch := s.Epoch()
		ended := make(chan error, 1)
		go func() { ended <- s.Run(t.Context(), func() bool { return false }) }()
		s.fail(ErrCorrupt)
		kit.Err(t, "run", ErrCorrupt)(<-ended)
		s = reopen(t, s, path)
		if s.SetAside() == "" || s.Epoch() == epoch {
			t.Errorf("aside %q, epoch %s", s.SetAside(), s.Epoch())
		}
	}
	aside, _ := filepath.Glob(path + ".corrupt-*")
	kit.Check(t, len(aside) == keepCorrupt, "set aside: %v", aside)
}

// A marker of damage, and what a crash left of a copy, belong to the file they lie next to: once that was moved away,
// the one that is made in its place is as good as any.
func TestMadeBesideLeftovers(t *testing.T) {
	s, path := openAt(t)
	s.fail(ErrCorrupt)
	<-s.marked
	closeNow(t, s)
	for _, suffix := range []string{suffixNew, suffixAside} {
		copyFiles(t, path, path+suffix)
	}
	kit.Must(t, os.Rename(path, path+".old"))
	s = open(t, Options{Path: path})
	put(t, s, 300, "a")
	epoch := s.Epoch()
	closeNow(t, s)
	kit.Should(t, Check(t.Context(), path))
	s = open(t, Options{Path: path})
	if s.SetAside() != "" || s.Epoch() != epoch || s.held()["a"] != 300 {
		t.Errorf("a new file is set aside as %q, holds %v", s.SetAside(), s.held())
	}
}

// A file of another schema is not opened, nor touched, nor set aside, and one line says what to do.
func TestOtherSchema(t *testing.T) {
	s, path := openAt(t)
	put(t, s, 10, "a")
	closeNow(t, s)
	before, _ := os.ReadFile(path)
	for version, want := range map[uint32]error{1: ErrNewer, 3: ErrEarlier} {
		_, err := tryOpen(t.Context(), Options{Path: path, Schema: Schema{Buckets: []string{rows}, Version: version}})
		if !errors.Is(err, want) || !strings.Contains(err.Error(), "it has schema 2") || strings.Contains(err.Error(), "\n") {
			t.Errorf("for a ccship of schema %d: %v", version, err)
		}
	}
	after, _ := os.ReadFile(path)
	kit.Check(t, string(before) == string(after), "the file was touched")
	if s = open(t, Options{Path: path}); s.SetAside() != "" || s.held()["a"] != 10 {
		t.Errorf("set aside %q", s.SetAside())
	}
}
