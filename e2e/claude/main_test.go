//go:build unix

package claude_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// binaries are the paths of the programs under test.
type binaries struct{ ccship, mcp, server string }

// built builds the programs, once per test process.
var built = sync.OnceValues(func() (binaries, error) {
	b := binaries{filepath.Join(workshop, "ccship"), filepath.Join(workshop, "ccship-mcp"), filepath.Join(workshop, "ccship-server")}
	for _, target := range []struct{ path, name string }{{b.ccship, "ccship"}, {b.mcp, "ccship-mcp"}, {b.server, "ccship-server"}} {
		cmd := exec.Command("go", "build", "-trimpath", "-o", target.path, "../../cmd/"+target.name)
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

// run is TestMain with defers that are run. Paths are short: a socket's may have only about a hundred bytes.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ccl")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir) // Claude Code names project folders by the real path
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	workshop = dir
	return m.Run()
}

// wanted skips what needs the real Claude Code unless it was asked for.
func wanted(t testing.TB) {
	t.Helper()
	if os.Getenv("CCSHIP_E2E_CLAUDE") != "1" {
		t.Skip("CCSHIP_E2E_CLAUDE=1 runs this with the real Claude Code")
	}
}

// programs builds the binaries or ends the test.
func programs(t testing.TB) binaries {
	t.Helper()
	b, err := built()
	must(t, err)
	return b
}

// eventually asks until cond holds, and ends the test when it does not within limit.
func eventually(t testing.TB, what string, limit time.Duration, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
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

// must ends the test on an error that is the test's own.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
