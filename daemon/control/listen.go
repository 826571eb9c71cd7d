package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ccship/ccship/internal/sys"
)

// dialTimeout limits how long a client waits for a connection. The kernel connects or refuses at once; the time is for
// a client process that gets no CPU on an overloaded machine.
const dialTimeout = 5 * time.Second

// Listen makes the control socket with mode 0600, in a folder that it makes with mode 0700 if it is missing. It
// replaces a socket on which nobody answers, and leaves anything else at the path alone. Errors are *Error with a hint:
// ErrInUse when a daemon answers, CodeSocket for a path that cannot be used. Closing the listener removes the socket.
func Listen(path string) (net.Listener, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, unusable(fmt.Sprintf("make folder of control socket: %v", err))
	}
	if err := sys.SocketFolder(filepath.Dir(path)); err != nil {
		return nil, notOurs(path)
	}
	if err := RemoveStale(path); err != nil {
		return nil, err
	}
	listen := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(restrict)
	}}
	ln, err := listen.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, unusable(fmt.Sprintf("listen on control socket: %v", err))
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(unusable(fmt.Sprintf("restrict control socket: %v", err)), ln.Close())
	}
	return ln, nil
}

// RemoveStale removes a socket that a killed daemon left behind, and nothing else. A missing file is no error; for
// other errors see Listen.
func RemoveStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unusable(fmt.Sprintf("look at control socket: %v", err))
	}
	if info.Mode().Type()&fs.ModeSocket == 0 && !oddSocket(info) {
		return unusable(fmt.Sprintf("%s exists and is not a socket; it was left alone", path))
	}
	conn, err := sys.DialPeer(context.Background(), net.Dialer{Timeout: dialTimeout}, path)
	if err == nil {
		return errors.Join(NewError(CodeInUse, "a daemon is running already (it answers on "+path+")",
			"see it with `ccship status`"), conn.Close())
	}
	if busy(err) {
		return NewError(CodeInUse, "a daemon is running already, but does not answer on "+path,
			"stop that process before another is started")
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, sys.ErrForeign) {
		return notOurs(path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unusable(fmt.Sprintf("remove stale control socket: %v", err))
	}
	return nil
}

// busy reports whether a dial failed because the listener is too slow to accept, not because there is none.
func busy(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, syscall.EAGAIN)
}

func unusable(message string) *Error {
	return NewError(CodeSocket, message, "name another path with --socket or CCSHIP_SOCKET")
}

// checkPath refuses paths too long for a socket address of this system; bind would only say "invalid argument".
func checkPath(path string) error {
	if len(path) <= maxPath {
		return nil
	}
	return unusable(fmt.Sprintf("control socket path is too long: %d bytes where this system allows %d: %s",
		len(path), maxPath, path))
}
