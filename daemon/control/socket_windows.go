package control

import (
	"io/fs"
	"net"
	"os"
)

// maxPath is the size of sun_path without its closing zero.
const maxPath = 107

// restrict does nothing: the folder's access list, inherited from the user's profile, keeps others out.
func restrict(uintptr) {}

// peer is always our own user: Windows does not identify the other end of a Unix socket.
func peer(*net.UnixConn) (int, error) { return os.Geteuid(), nil }

// oddSocket reports whether Windows shows a Unix socket as an irregular file, a reparse point.
func oddSocket(info fs.FileInfo) bool { return info.Mode()&fs.ModeIrregular != 0 }

// foreign is always false: see peer.
func foreign(string) bool { return false }
