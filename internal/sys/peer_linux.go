package sys

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// PeerOf returns the user id at the other end.
func PeerOf(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("read peer credentials: %w", err)
	}
	var cred *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, fmt.Errorf("read peer credentials: %w", err)
	}
	if failed != nil {
		return 0, fmt.Errorf("read peer credentials: %w", failed)
	}
	return int(cred.Uid), nil
}
