package kit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// A limit is there to end a test that hangs, not to measure: a test waits many times longer than on a machine with
// nothing else to do. Yet go test ends all tests after ten minutes, without a word of what was awaited.
const (
	patience = 12
	longest  = 5 * time.Minute
)

// Eventually asks until cond holds. It ends the test when cond does not hold within limit, which is that of a quiet
// machine.
func Eventually(t testing.TB, what string, limit time.Duration, cond func() bool) {
	t.Helper()
	limit = max(limit, min(patience*limit, longest))
	if !Within(limit, cond) {
		t.Fatalf("not within %s: %s", limit, what)
	}
}

// Within asks until cond holds, for limit at most, and reports whether it did. What has not happened for long is asked
// for less often: to ask often costs a program's start, and so delays what is waited for.
func Within(limit time.Duration, cond func() bool) bool {
	began := time.Now()
	for !cond() {
		waited := time.Since(began)
		if waited >= limit {
			return false
		}
		Pass(max(shortestPause, min(waited/8, longestPause)))
	}
	return true
}

// The pauses between two times that Within asks.
const (
	shortestPause = 10 * time.Millisecond
	longestPause  = 300 * time.Millisecond
)

// Pass lets real time go by: for what must not happen meanwhile, never to wait for something.
func Pass(d time.Duration) { <-time.After(d) }

// Tail returns the last n bytes of a text.
func Tail(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}

// The ports of Address are below those that systems give to programs that ask for any.
const (
	firstPort = 10_000
	ports     = 20_000
)

var addresses sync.Map // those that Address returned

// Address returns an address of loopback for a program that must be told where to listen. No port that is chosen by a
// system becomes the same one, neither before the program listens nor after it has ended.
func Address(t testing.TB) string {
	t.Helper()
	for range ports {
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(ports))
		if _, again := addresses.LoadOrStore(address, true); again {
			continue
		}
		if l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address); err == nil {
			Must(t, l.Close())
			return address
		}
	}
	t.Fatal("no port of loopback is free")
	return ""
}

// AppendTranscript appends text to a file, as Claude Code does. Where this program's clock is not the disk's (make
// test-ahead) the file has the time of the clock, and a new one appears with it: the daemon must not see another one
// meanwhile.
func AppendTranscript(t testing.TB, path, text string) {
	t.Helper()
	at := path
	_, err := os.Stat(path)
	if now := time.Now(); errors.Is(err, os.ErrNotExist) && now.Sub(diskTime(t)).Abs() > time.Hour {
		at = filepath.Join(t.TempDir(), "new")
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	Must(t, err)
	_, err = f.WriteString(text)
	Must(t, errors.Join(err, f.Close()))
	if at == path {
		return
	}
	now := time.Now()
	Must(t, errors.Join(os.Chtimes(at, now, now), os.Rename(at, path)))
}

// diskTime is the time that the disk gives what is written now.
func diskTime(t testing.TB) time.Time {
	t.Helper()
	info, err := os.Stat(t.TempDir()) // a new folder
	Must(t, err)
	return info.ModTime()
}

// WriteFile writes a file that only its owner may read, and makes the folders above it.
func WriteFile(t testing.TB, path, text string) {
	t.Helper()
	Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	Must(t, os.WriteFile(path, []byte(text), 0o600))
}

// Socket returns a path for a socket, in a folder of its own, that is short enough for every system.
func Socket(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ccs")
	Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "c.sock")
}

// Locked does something while it holds a lock.
func Locked(lock sync.Locker, do func()) {
	lock.Lock()
	defer lock.Unlock()
	do()
}

// Under reads something while it holds a lock.
func Under[T any](lock sync.Locker, read func() T) T {
	lock.Lock()
	defer lock.Unlock()
	return read()
}
