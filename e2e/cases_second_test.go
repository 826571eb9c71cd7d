//go:build unix

package e2e

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestSecondDaemon: a second daemon on the same folder, with another state folder, names the first and ends; one that
// a service manager started waits, and takes over when the first ends.
func TestSecondDaemon(t *testing.T) {
	w := aloneWorld(t)
	c, path := shipped(w, 64, 5)
	out := w.ccship("run", "--state-dir", w.dir+"/other")
	if out.code != 1 || !strings.Contains(out.stderr, "another ccship delivers") || !strings.Contains(out.stderr, "pid ") {
		t.Errorf("a second daemon: exit %d\n%s", out.code, out.stderr)
	}
	service := w.command(context.Background(), kit.Program(t, "ccship"), "run", "--state-dir", w.dir+"/other")
	service.Env = append(service.Env, "NOTIFY_SOCKET="+w.dir+"/nobody", "CCSHIP_SOCKET="+w.dir+"/s2")
	waits := kit.Launch(t, service)
	eventually(t, "the service waits", 30*time.Second, func() bool {
		return strings.Contains(waits.Log.String(), "waiting: another ccship delivers")
	})
	w.addAndSync(path, c.even(2, 1500))
	w.same(c.session, path)
	w.d.MustStop(t)
	w.add(path, c.even(2, 1500))
	eventually(t, "the service has taken over", 60*time.Second, func() bool {
		return bytes.Equal(w.exact.raw(c.session, ""), w.read(path))
	})
}
