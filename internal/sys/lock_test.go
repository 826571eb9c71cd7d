package sys

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestMain is also the other process: with a root in its environment it takes the lock until its input ends.
func TestMain(m *testing.M) {
	root := os.Getenv("SINGLETON_ROOT")
	if root == "" {
		os.Exit(m.Run())
	}
	l, err := AcquireLock([]string{root}, Holder{PID: os.Getpid(), State: "/other/state", Since: time.Now()})
	if err != nil {
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString("locked\n")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	_ = l.Release()
	os.Exit(0)
}

// TestTwoProcesses: the second learns who the first is, also by another path to the root; when the first ends, even by
// a kill, the root is free.
func TestTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	root, link := filepath.Join(dir, "root"), filepath.Join(dir, "link")
	kit.Must(t, os.Mkdir(root, 0o700))
	if err := os.Symlink(root, link); err != nil {
		link = root
	}
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), "SINGLETON_ROOT="+root, "XDG_RUNTIME_DIR="+dir, "XDG_STATE_HOME="+dir)
	in := kit.Try(other.StdinPipe()).Must(t)
	defer in.Close()
	out := kit.Try(other.StdoutPipe()).Must(t)
	kit.Must(t, other.Start())
	if text, err := bufio.NewReader(out).ReadString('\n'); err != nil || text != "locked\n" {
		t.Fatalf("the other process: %q, %v", text, err)
	}
	var held *HeldError
	if _, err := AcquireLock([]string{dir, link}, Holder{PID: 1}); !errors.As(err, &held) {
		t.Fatalf("the second: %v", err)
	}
	kit.Check(t, held.Holder.PID == other.Process.Pid && held.Holder.State == "/other/state" && held.Root == link,
		"held: %+v", held)
	h, ok := FindHolder([]string{root})
	kit.Check(t, ok && h.PID == other.Process.Pid, "found %+v, %t", h, ok)
	kit.Must(t, other.Process.Kill())
	_ = other.Wait() // it was killed
	l, err := AcquireLock([]string{dir, link}, Holder{PID: 1})
	kit.Require(t, err == nil, "after its end: %v", err)
	kit.Should(t, l.Release())
	_, ok = FindHolder([]string{root})
	kit.Check(t, !ok, "a released root is held")
}

// TestMissingRoot: a root that does not exist has a lock, too, and it is not that of its parent.
func TestMissingRoot(t *testing.T) {
	dir := t.TempDir()
	l := kit.Try(AcquireLock([]string{filepath.Join(dir, "a", "b")}, Holder{PID: 7})).Must(t)
	defer l.Release()
	h, ok := FindHolder([]string{filepath.Join(dir, "a", "b")})
	kit.Check(t, ok && h.PID == 7, "found %+v, %t", h, ok)
	_, ok = FindHolder([]string{dir})
	kit.Check(t, !ok, "the parent is held")
}

// TestReplacedRoot: a root whose folder was replaced is still held, and the folder that was moved away is not.
func TestReplacedRoot(t *testing.T) {
	dir := t.TempDir()
	root, away := filepath.Join(dir, "root"), filepath.Join(dir, "away")
	kit.Must(t, os.Mkdir(root, 0o700))
	l := kit.Try(AcquireLock([]string{root}, Holder{PID: 7})).Must(t)
	defer l.Release()
	kit.Must(t, os.Rename(root, away))
	h, ok := FindHolder([]string{away})
	kit.Check(t, !ok, "a folder that nobody delivers any more is held by %+v", h)
	kit.Must(t, os.Mkdir(root, 0o700))
	h, ok = FindHolder([]string{root})
	kit.Check(t, ok && h.PID == 7, "found %+v, %t", h, ok)
}
