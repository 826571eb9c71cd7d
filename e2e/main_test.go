//go:build unix

package e2e

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

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

// launch starts a program; it is killed at the end of the test, and its log is shown when the test failed.
func (h *home) launch(program string, args ...string) *kit.Process {
	h.t.Helper()
	return kit.Launch(h.t, h.command(context.Background(), program, args...))
}

// daemon starts `ccship run` and returns when it answers.
func (h *home) daemon(args ...string) *kit.Process {
	h.t.Helper()
	p := h.launch(kit.Program(h.t, "ccship"), append([]string{"run"}, args...)...)
	eventually(h.t, "the daemon answers", 30*time.Second, func() bool {
		if p.Ended() { // Code waits for the end
			h.t.Fatalf("ccship run ended with %d", p.Code())
		}
		return h.status().Running
	})
	return p
}
