package sys

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// ErrForeign means that a socket, or the folder that it is in, belongs to another user.
var ErrForeign = errors.New("it belongs to another user")

// DialPeer connects to the Unix socket at path. The error wraps ErrForeign, and nothing was sent, if neither this user
// nor root, who could become this user, listens there or owns its folder. On Windows, which does not say who listens,
// the access lists of the folder are all there is.
func DialPeer(ctx context.Context, dialer net.Dialer, path string) (net.Conn, error) {
	if err := SocketFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("dial: not a Unix socket"), conn.Close())
	}
	uid, err := PeerOf(unix)
	if err == nil && !TrustedPeer(uid) {
		err = fmt.Errorf("user %d listens on %s: %w", uid, path, ErrForeign)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// TrustedPeer reports whether a user is this one, or root.
func TrustedPeer(uid int) bool { return uid == os.Geteuid() || uid == 0 }

// SocketFolder returns an error that wraps ErrForeign for a folder of another user. One that is missing is nobody's.
func SocketFolder(path string) error {
	if info, err := os.Stat(path); err == nil {
		if uid, known := owner(info); known && !TrustedPeer(uid) {
			return fmt.Errorf("%s is user %d's: %w", path, uid, ErrForeign)
		}
	}
	return nil
}

// Foreign reports whether the socket at path belongs to another user, whose program hangs up on this one.
func Foreign(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	uid, known := owner(info)
	return known && uid != os.Geteuid() && os.Geteuid() != 0
}
