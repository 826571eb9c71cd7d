package sys

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestDial: the kernel tells both ends who is at the other.
func TestDial(t *testing.T) {
	dir, err := os.MkdirTemp("", "ccs") // the path of a socket is short
	kit.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	ln := kit.Try(net.Listen("unix", path)).Must(t)
	defer ln.Close()
	client := kit.Try(DialPeer(t.Context(), net.Dialer{}, path)).Must(t)
	defer client.Close()
	conn := kit.Try(ln.Accept()).Must(t)
	defer conn.Close()
	kit.Gives(t, "the peer", os.Geteuid())(PeerOf(conn.(*net.UnixConn)))
	for uid, want := range map[int]bool{os.Geteuid(): true, 0: true, os.Geteuid() + 4711: false} {
		kit.Check(t, TrustedPeer(uid) == want, "Trusted(%d) = %v", uid, !want)
	}
}
