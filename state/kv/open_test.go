package kv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

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
