//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestUpOnAnothersPort: another user's server on the port of `up` is asked for nothing and shown no key.
func TestUpOnAnothersPort(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("another user's server needs root")
	}
	h := aloneHome(t)
	up, base, _, _ := runningUp(t, h)
	up.MustStop(t)
	stranger := newHome(t)
	stranger.giveTo(65534, 65534)
	taken := stranger.launch(kit.Program(t, "ccship-server"), "serve", "--listen", strings.TrimPrefix(base, "http://"),
		"--store", "sqlite:"+filepath.Join(stranger.dir, "server.db"), "--log-level", "debug")
	kit.Try(taken.Listening()).Must(t)
	again := h.launch(kit.Program(t, "ccship"), "up")
	eventually(t, "up ends, for another user's server listens", time.Minute, again.Ended)
	kit.Check(t, again.Code() == 1 && strings.Contains(again.Log.String(), "taken"),
		"exit %d: %s", again.Code(), again.Log)
	log := taken.Log.String()
	kit.Check(t, !strings.Contains(log, "/api/"), "the other user's server was asked:\n%s", log)
}
