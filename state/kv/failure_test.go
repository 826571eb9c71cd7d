package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/e2e/kit"
)

// overwrite changes bytes of a file that is in use.
func overwrite(t *testing.T, path string, at int64, b []byte) {
	t.Helper()
	f := kit.Try(os.OpenFile(path, os.O_WRONLY, 0)).Must(t)
	defer f.Close()
	kit.Try(f.WriteAt(b, at)).Must(t)
}

// useAll reads and writes until something fails.
func useAll(t *testing.T, s store) error {
	t.Helper()
	for i := range 200 {
		if err := s.View(t.Context(), (&owner{}).Load); err != nil {
			return err
		}
		if err := s.putRows(t.Context(), 900, names("after", 1+i%7)...); err != nil {
			return err
		}
	}
	return nil
}

// A file that is damaged while it is in use: the first failure is the last use, nothing hangs, and the next Open sets
// the file aside.
func TestDamagedInUse(t *testing.T) {
	page := make([]byte, 4096)
	noise := make([]byte, 4096)
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	tests := map[string]func(path string){
		"both roots zeroed": func(path string) { overwrite(t, path, 0, make([]byte, 8192)) },
		"newer root zeroed": func(path string) {
			b, _ := os.ReadFile(path)
			newer := int64(0)
			if binary.NativeEndian.Uint64(b[4096+64:]) > binary.NativeEndian.Uint64(b[64:]) {
				newer = 4096
			}
			overwrite(t, path, newer, page)
		},
		"all pages zeroed": func(path string) { overwrite(t, path, 8192, make([]byte, 200<<12)) },
		"all pages noise": func(path string) {
			for at := int64(2); at < 60; at++ {
				binary.NativeEndian.PutUint64(noise, uint64(at))
				binary.NativeEndian.PutUint16(noise[8:], uint16(1+at%2))
				overwrite(t, path, at*4096, noise)
			}
		},
		"cut to nothing":  func(path string) { _ = os.Truncate(path, 0) },
		"cut to a page":   func(path string) { _ = os.Truncate(path, 4096) },
		"cut to the root": func(path string) { _ = os.Truncate(path, 8192) },
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state.db")
			s := kit.Try(tryOpen(t.Context(), Options{Path: path, FreeDisk: plenty})).Must(t)
			put(t, s, 2000, names("before", 60)...)
			epoch := s.Epoch()
			ended := make(chan error, 1)
			go func() { ended <- s.Run(context.Background(), func() bool { return false }) }()
			damage(path)
			err := useAll(t, s)
			kit.Require(t, errors.Is(err, ErrCorrupt), "it is used: %v", err)
			failsAtOnce(t, s)
			err = useAll(t, s)
			kit.Check(t, !strings.Contains(err.Error(), "runtime error"), "a person reads %q", err)
			err = <-ended
			kit.Check(t, errors.Is(err, ErrCorrupt), "run: %v", err)
			if err := s.Close(); err != nil && strings.Contains(err.Error(), closeLimit.String()) { // it may have given up
				t.Errorf("close waits as if nothing had failed: %v", err)
			}
			s = open(t, Options{Path: path})
			kit.Check(t, s.SetAside() != "" && s.Epoch() != epoch, "it is not set aside")
			kit.Should(t, useAll(t, s))
		})
	}
}

// Run ends with the failure also while its own upkeep waits for a lock that bbolt will never release: else the daemon
// would go on without its state, and neither work nor end.
func TestFailureEndsRunThatHangs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := kit.Try(tryOpen(t.Context(), Options{Path: path, FreeDisk: plenty})).Must(t)
	put(t, s, 2000, names("before", 60)...)
	hangs, free := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(free) })
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context(), func() bool { close(hangs); <-free; return false }) }()
	<-hangs
	kit.Must(t, os.Truncate(path, 4096))
	err := useAll(t, s)
	kit.Require(t, errors.Is(err, ErrCorrupt), "it is used: %v", err)
	select {
	case err := <-ended:
		kit.Check(t, errors.Is(err, ErrCorrupt), "run: %v", err)
	case <-time.After(2 * time.Minute):
		t.Error("Run hangs")
	}
	_ = s.Close() // it may have given up
}

// failsAtOnce demands that every call answers an error, whatever bbolt's locks are.
func failsAtOnce(t *testing.T, s store) {
	t.Helper()
	answered := make(chan error, 4)
	go func() { answered <- s.View(t.Context(), func(*Snapshot) error { return nil }) }()
	go func() { answered <- s.putRows(t.Context(), 1, "x") }()
	go func() { answered <- s.Alive(t.Context()) }()
	go func() { answered <- s.Compact(t.Context()) }()
	for range cap(answered) {
		select {
		case err := <-answered:
			kit.Check(t, errors.Is(err, ErrCorrupt), "a later call: %v", err)
		case <-time.After(2 * time.Minute):
			t.Fatal("a later call hangs")
		}
	}
}

// Requests that wait behind one that hangs get the failure.
func TestFailureReachesThoseThatWait(t *testing.T) {
	s := open(t, Options{})
	s.group.write.Lock() // as a transaction that hangs holds it
	waiting := make(chan error, 3)
	for range cap(waiting) {
		go func() { waiting <- s.Alive(context.Background()) }()
	}
	waitFor(t, "all wait", func() bool { return s.group.queued() == cap(waiting) })
	s.fail(ErrFailed)
	for range cap(waiting) {
		err := <-waiting
		kit.Check(t, errors.Is(err, ErrFailed), "%v", err)
	}
	if err := s.Close(); err == nil || strings.Contains(err.Error(), closeLimit.String()) { // as if nothing had failed
		t.Errorf("close: %v", err)
	}
	again, err := lockFile(t.Context(), s.opt.Path+suffixLock)
	kit.Require(t, err == nil, "the lock is kept: %v", err)
	_ = again.Release()
	s.group.write.Unlock()
}

// A removed file is still readable through the open one, and is written again.
func TestRemovedInUse(t *testing.T) {
	s, path := openAt(t)
	put(t, s, 300, "a", "b")
	want, epoch := dump(t, s), s.Epoch()
	stop := run(t, s)
	kit.Must(t, os.Remove(path))
	s.Wake()
	waitFor(t, "the file is there again", func() bool { _, err := os.Stat(path); return err == nil })
	diff := cmp.Diff(want, dump(t, s))
	kit.Check(t, diff == "", "%v", diff)
	put(t, s, 10, "c")
	stop()
	s = reopen(t, s, path)
	diff = cmp.Diff(map[string]int{"a": 300, "b": 300, "c": 10}, s.held())
	kit.Check(t, diff == "" && s.Epoch() == epoch, "%v", diff)
}

// Another file instead of the open one ends its use, and is left for the next Open.
func TestReplacedInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := kit.Try(tryOpen(t.Context(), Options{Path: path, FreeDisk: plenty})).Must(t)
	put(t, s, 300, "a")
	copyFiles(t, path, path+".old")
	put(t, s, 300, "b")
	ended := make(chan error, 1)
	go func() { ended <- s.Run(context.Background(), func() bool { return false }) }()
	kit.Must(t, os.Rename(path+".old", path))
	s.Wake()
	kit.Err(t, "run", ErrFailed)(<-ended)
	kit.Should(t, s.Close())
	s = open(t, Options{Path: path})
	if diff := cmp.Diff(map[string]int{"a": 300}, s.held()); diff != "" || s.SetAside() != "" {
		t.Errorf("%s %s", s.SetAside(), diff)
	}
}

// A programming error in a transaction is no damage: it goes on as a panic, and undoes what it wrote.
func TestProgrammingErrorsAreNoDamage(t *testing.T) {
	s := open(t, Options{})
	put(t, s, 10, "a")
	var none []int
	panics := func(fn func()) {
		t.Helper()
		defer func() { kit.Check(t, recover() != nil, "it did not panic") }()
		fn()
	}
	panics(func() { _ = s.viewQuietly(func(*Snapshot) error { return errors.New(string(rune(none[3]))) }) })
	panics(func() { _, _ = s.transact(s.bolt, func(*bbolt.Tx) error { return errors.New(string(rune(none[3]))) }) })
	put(t, s, 10, "b")
	kit.Same(t, "differs", cmp.Diff(map[string]int{"a": 10, "b": 10}, s.held()))
}
