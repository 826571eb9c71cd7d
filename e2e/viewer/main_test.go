//go:build unix

package viewer_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Both programs are built at first use, once per test process.
var (
	builtServer = sync.OnceValues(func() (string, error) { return build("ccship-server") })
	builtDaemon = sync.OnceValues(func() (string, error) { return build("ccship") })
)

func build(name string) (string, error) {
	path := filepath.Join(workshop, name)
	cmd := exec.Command("go", "build", "-trimpath", "-o", path, "../../cmd/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return path, nil
}

// workshop is the folder of this test process: binaries, and what tests leave behind. Set by TestMain before any test.
var workshop string

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run is TestMain with defers that are run.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ccv")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	workshop = dir
	if err := touchSources(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer closeBrowser()
	defer closeGallery()
	return m.Run()
}

// touchSources looks at every source file. The go command keeps a test's result until a file changes that the test has
// looked at; it does not see what the builds started from here read.
func touchSources() error {
	return filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case os.IsNotExist(err):
			return nil
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != "../..":
			return fs.SkipDir
		case entry.Type().IsRegular():
			_, err = os.Stat(path)
		}
		if os.IsNotExist(err) {
			return nil
		}
		return err
	})
}

// eventually asks until cond holds, and ends the test when it does not within limit.
func eventually(t testing.TB, what string, limit time.Duration, cond func() bool) {
	t.Helper()
	if !within(limit, cond) {
		t.Fatalf("not within %s: %s", limit, what)
	}
}

// within asks until cond holds, at most for limit.
func within(limit time.Duration, cond func() bool) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.After(limit)
	for !cond() {
		select {
		case <-tick.C:
		case <-end:
			return false
		}
	}
	return true
}

// must ends the test on an error that is the test's own.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
