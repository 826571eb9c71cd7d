//go:build unix

package sys

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ccship/ccship/e2e/kit"
)

// TestRemove: a daemon's files go with it, and those of one that was killed when it is asked for; those of one that
// delivers stay.
func TestRemove(t *testing.T) {
	root := t.TempDir()
	l := kit.Try(AcquireLock([]string{root}, Holder{PID: 7})).Must(t)
	var held *HeldError
	if removed, err := RemoveLock([]string{root}); !errors.As(err, &held) || len(removed) != 0 {
		t.Errorf("removed %q while a daemon delivers the root: %v", removed, err)
	}
	_, ok := FindHolder([]string{root})
	kit.Check(t, ok, "the lock is gone")
	names := []string{l.files[0].Name(), l.files[1].Name()}
	kit.Must(t, l.Release())
	gone := func(when string) {
		t.Helper()
		for _, name := range names {
			kit.Err(t, fmt.Sprintf("%s %s is there", when, name), os.ErrNotExist)(os.Stat(name))
		}
	}
	gone("after its end")
	_, ok = FindHolder([]string{root})
	kit.Check(t, !ok, "a released root is held")
	gone("after somebody looked")
	for _, name := range names {
		kit.Must(t, os.WriteFile(name, []byte(`{"pid":7}`), 0o600))
	}
	removed, err := RemoveLock([]string{root})
	kit.Check(t, err == nil && len(removed) == 2, "removed %q: %v", removed, err)
	gone("after it was removed,")
}

// TestRemoveBesideAcquire: while the files are removed over and over, no two acquire a root at once.
func TestRemoveBesideAcquire(t *testing.T) {
	root := t.TempDir()
	var mu sync.Mutex // held by the owner of the root
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 300 {
				if _, err := RemoveLock([]string{root}); err != nil && !isHeld(err) {
					t.Error(err)
				}
				l, err := AcquireLock([]string{root}, Holder{PID: 7})
				if err != nil {
					kit.Check(t, isHeld(err), "%v", err)
					continue
				}
				if !mu.TryLock() {
					t.Error("two have the root")
					_ = l.Release()
					return
				}
				for range 20 {
					runtime.Gosched()
				}
				mu.Unlock()
				kit.Should(t, l.Release())
			}
		})
	}
	all.Wait()
	_, _ = RemoveLock([]string{root})
}

// TestNamed: a file that was removed, or replaced, has not its name any more.
func TestNamed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	f, err := openLocked(name)
	kit.Require(t, err == nil && isNamed(f, name), "%v", err)
	defer f.Close()
	if err := os.Remove(name); err != nil || isNamed(f, name) {
		t.Error("the removed file has its name", err)
	}
	other, err := openLocked(name)
	kit.Check(t, err == nil && !isNamed(f, name) && isNamed(other, name), "%v %v", "the replaced file has its name", err)
	_ = other.Close()
}

func isHeld(err error) bool {
	_, ok := errors.AsType[*HeldError](err)
	return ok
}

// TestOpenOwn: a link, a pipe, a folder and a file of another user are refused at once, and nothing is made or written
// behind a link.
func TestOpenOwn(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(errs ...error) {
		t.Helper()
		kit.Must(t, errors.Join(errs...))
	}
	must(os.WriteFile(at("mine"), []byte("mine\n"), 0o644), os.Symlink(at("mine"), at("link")), os.Symlink(at("none"), at("dangling")),
		os.Mkdir(at("folder"), 0o700), syscall.Mkfifo(at("pipe"), 0o600), os.WriteFile(at("theirs"), nil, 0o666))
	refused := []string{"link", "dangling", "folder", "pipe"}
	if os.Geteuid() == 0 {
		must(os.Chown(at("theirs"), 4711, 4711))
		refused = append(refused, "theirs")
	}
	for _, name := range refused {
		for _, flag := range []int{os.O_RDONLY, os.O_RDWR | os.O_CREATE, os.O_WRONLY | os.O_APPEND | os.O_CREATE} {
			if f, err := OpenOwn(at(name), flag); err == nil {
				t.Errorf("%s is opened (%#x): %v", name, flag, f.Close())
			} else if name != "folder" && !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	_, err := os.Lstat(at("none"))
	kit.Check(t, err != nil, "a file was made behind a link")
	for _, name := range []string{"mine", "fresh"} {
		f, err := OpenOwn(at(name), os.O_RDWR|os.O_CREATE)
		must(err, f.Close())
	}
	info, err := os.Stat(at("fresh"))
	kit.Check(t, err == nil && info.Mode() == 0o600, "a new file: %v %v", info, err)
	text, err := ReadOwn(at("mine"))
	kit.Check(t, string(text) == "mine\n" && err == nil, "%q %v", text, err)
}

// TestOpenRegular opens files and links to them, and waits for nothing else.
func TestOpenRegular(t *testing.T) {
	at := func(name string) string { return filepath.Join(t.TempDir(), name) }
	file, pipe, link := at("file"), at("pipe"), at("link")
	kit.Must(t, os.WriteFile(file, []byte("text"), 0o600))
	kit.Must(t, unix.Mkfifo(pipe, 0o600))
	kit.Must(t, os.Symlink(file, link))
	for _, path := range []string{file, link} {
		f := kit.Try(OpenRegular(path)).Must(t)
		kit.Equal(t, path, string(kit.Try(io.ReadAll(f)).Must(t)), "text")
		kit.Must(t, f.Close())
	}
	kit.Must(t, os.Remove(link))
	kit.Must(t, os.Symlink(pipe, link))
	folder := kit.Try(os.MkdirTemp("", "s")).Must(t) // a socket's path is short
	defer os.RemoveAll(folder)
	socket := filepath.Join(folder, "s")
	l := kit.Try(net.Listen("unix", socket)).Must(t)
	defer l.Close()
	for _, path := range []string{pipe, link, t.TempDir(), os.DevNull, socket} {
		kit.Err(t, path, ErrNotFile)(OpenRegular(path))
	}
	kit.Err(t, "nothing", os.ErrNotExist)(OpenRegular(at("nothing")))
}

// TestSquattedFolder: where another user has taken the folder, all processes use the next one, also when the first is
// free again; with none left the error says what is in the way.
func TestSquattedFolder(t *testing.T) {
	first, second := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	squat := func(path string) {
		t.Helper()
		kit.Must(t, os.Mkdir(path, 0o777))
		kit.Must(t, os.Chmod(path, 0o777))
	}
	squat(first)
	got, err := ownFolder(first, second)
	kit.Require(t, got == second && err == nil, "%q %v", got, err)
	kit.Must(t, os.Remove(first))
	kit.Gives(t, "the first is free again", second)(ownFolder(first, second))
	kit.Must(t, os.Remove(second))
	squat(first)
	squat(second)
	if _, err := ownFolder(first, second); err == nil || !strings.Contains(err.Error(), first+" is not a folder that only this user can use: remove it") {
		t.Errorf("both are taken: %v", err)
	}
}

// TestReleaseBesideFork: a child between fork and exec holds every open file. It does not keep the lock.
func TestReleaseBesideFork(t *testing.T) {
	root := t.TempDir()
	l := kit.Try(AcquireLock([]string{root}, Holder{PID: 7})).Must(t)
	for _, f := range l.files {
		inherited := kit.Try(syscall.Dup(int(f.Fd()))).Must(t)
		defer syscall.Close(inherited)
	}
	kit.Must(t, l.Release())
	h, ok := FindHolder([]string{root})
	kit.Check(t, !ok, "held by %+v", h)
}
