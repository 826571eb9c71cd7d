package control

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// maxPath is the size of sun_path without its closing zero.
const maxPath = 107

// restrict sets the mode before the socket file exists, so that it is never open to others. It does not change the
// process's umask, which all goroutines share.
func restrict(fd uintptr) { _ = unix.Fchmod(int(fd), 0o600) } // Listen's chmod covers a kernel that refuses

func oddSocket(fs.FileInfo) bool { return false }
