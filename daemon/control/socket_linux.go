package control

import (
	"fmt"
	"io/fs"
	"net"

	"golang.org/x/sys/unix"
)

// maxPath is the size of sun_path without its closing zero.
const maxPath = 107

// restrict sets the mode before the socket file exists, so that it is never open to others. It does not change the
// process's umask, which all goroutines share.
func restrict(fd uintptr) { _ = unix.Fchmod(int(fd), 0o600) } // Listen's chmod covers a kernel that refuses

// peer is the user id at the other end.
func peer(conn *net.UnixConn) (int, error) {
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

func oddSocket(fs.FileInfo) bool { return false }
