package control

import (
	"fmt"
	"io/fs"
	"net"

	"golang.org/x/sys/unix"
)

// maxPath is the size of sun_path without its closing zero.
const maxPath = 103

// restrict does nothing: macOS refuses fchmod on a socket. The folder is 0700 and every peer's user is checked.
func restrict(uintptr) {}

// peer is the user id at the other end.
func peer(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("read peer credentials: %w", err)
	}
	var cred *unix.Xucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	}); err != nil {
		return 0, fmt.Errorf("read peer credentials: %w", err)
	}
	if failed != nil {
		return 0, fmt.Errorf("read peer credentials: %w", failed)
	}
	return int(cred.Uid), nil
}

func oddSocket(fs.FileInfo) bool { return false }
