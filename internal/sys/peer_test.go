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
	ln, err := net.Listen("unix", path)
	kit.Must(t, err)
	defer ln.Close()
	client, err := DialPeer(t.Context(), net.Dialer{}, path)
	kit.Must(t, err)
	defer client.Close()
	conn, err := ln.Accept()
	kit.Must(t, err)
	defer conn.Close()
	if uid, err := PeerOf(conn.(*net.UnixConn)); err != nil || uid != os.Geteuid() {
		t.Errorf("the peer is %d %v, want %d", uid, err, os.Geteuid())
	}
	for uid, want := range map[int]bool{os.Geteuid(): true, 0: true, os.Geteuid() + 4711: false} {
		if TrustedPeer(uid) != want {
			t.Errorf("Trusted(%d) = %v", uid, !want)
		}
	}
}
