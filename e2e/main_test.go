//go:build unix

package e2e

import (
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// What every case needs, by its short name.
var (
	eventually = kit.Eventually
	must       = kit.Must
	pass       = kit.Pass
)

// TestMain: as the benchmark's floor the test binary is its own second program.
func TestMain(m *testing.M) {
	if os.Getenv(floorEnv) != "" {
		os.Exit(floorMain())
	}
	if servesAsSystemd() {
		return
	}
	// A shell that starts the tests in the background has them ignore interrupts, and so would every program of theirs.
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	kit.SideBySide(8)
	os.Exit(kit.Main(m, "ccs"))
}
