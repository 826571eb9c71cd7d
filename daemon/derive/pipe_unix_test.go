//go:build unix

package derive

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/internal/sys"
)

// TestPipeInATranscriptsPlace does not wait for somebody who writes to it: every other session would wait too.
func TestPipeInATranscriptsPlace(t *testing.T) {
	h := newHarness(t)
	c := chat{Session: sessionA}
	h.delivered(map[string]string{sessionA: c.Prompt("one") + c.Answer("two")})
	d, id := h.alone(), h.id(sessionA)
	kit.Must(t, os.Remove(h.path(sessionA)))
	kit.Must(t, unix.Mkfifo(h.path(sessionA), 0o600))
	kit.Err(t, "a pipe", sys.ErrNotFile)(d.advance(t.Context(), id))
}
