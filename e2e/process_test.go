//go:build unix

package e2e

import (
	"context"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

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
		if p.Ended() {
			h.t.Fatalf("ccship run ended with %d", p.Code())
		}
		return h.status().Running
	})
	return p
}
