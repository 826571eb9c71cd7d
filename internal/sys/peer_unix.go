//go:build linux || darwin

package sys

import (
	"fmt"
	"net"
)

// PeerOf returns the user id at the other end.
func PeerOf(conn *net.UnixConn) (uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("read peer credentials: %w", err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { uid, failed = peerUser(int(fd)) }); err != nil {
		return 0, fmt.Errorf("read peer credentials: %w", err)
	}
	if failed != nil {
		return 0, fmt.Errorf("read peer credentials: %w", failed)
	}
	return uid, nil
}
