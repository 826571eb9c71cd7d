package peer

import (
	"io/fs"
	"net"
	"os"
)

// Of is always our own user: Windows does not identify the other end of a Unix socket.
func Of(*net.UnixConn) (int, error) { return os.Geteuid(), nil }

func owner(fs.FileInfo) (uid int, known bool) { return 0, false }
