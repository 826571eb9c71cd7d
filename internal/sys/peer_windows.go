package sys

import (
	"io/fs"
	"net"
	"os"
)

// PeerOf is always our own user: Windows does not identify the other end of a Unix socket.
func PeerOf(*net.UnixConn) (int, error) { return os.Geteuid(), nil }

func owner(fs.FileInfo) (uid int, known bool) { return 0, false }
