//go:build unix

package e2e

import (
	"errors"
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

// binaries are the paths of the programs under test.
type binaries struct{ ccship, server string }

// built builds both programs, once per test process.
var built = sync.OnceValues(func() (binaries, error) {
	b := binaries{filepath.Join(workshop, "ccship"), filepath.Join(workshop, "ccship-server")}
	for _, target := range []struct{ path, name string }{{b.ccship, "ccship"}, {b.server, "ccship-server"}} {
		cmd := exec.Command("go", "build", "-trimpath", "-o", target.path, "../cmd/"+target.name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return b, fmt.Errorf("build %s: %w\n%s", target.name, err, out)
		}
	}
	return b, nil
})

// workshop is the folder of this test process: binaries, and a folder per home. Set by TestMain before any test.
var workshop string

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run is TestMain with defers that are run. As the benchmark's floor the test binary is its own second program.
func run(m *testing.M) int {
	if os.Getenv(floorEnv) != "" {
		return floorMain()
	}
	dir, err := os.MkdirTemp("", "ccs")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // one case runs the daemon as another user
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	workshop = dir
	if err := touchSources(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// touchSources looks at every source file. The go command keeps a test's result until a file changes that the test has
// looked at; it does not see what the builds started from here read.
func touchSources() error {
	return filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != "..":
			return fs.SkipDir
		case entry.Type().IsRegular():
			_, err = os.Stat(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// programs builds the binaries or ends the test.
func programs(t testing.TB) binaries {
	t.Helper()
	b, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// eventually asks until cond holds, and ends the test when it does not within limit.
func eventually(t testing.TB, what string, limit time.Duration, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.After(limit)
	for !cond() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// pass lets real time go by: for what must not happen meanwhile, never to wait for something.
func pass(d time.Duration) { <-time.After(d) }

// must ends the test on an error that is the test's own.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
