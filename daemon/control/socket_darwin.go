package control

import "io/fs"

// maxPath is the size of sun_path without its closing zero.
const maxPath = 103

// restrict does nothing: macOS refuses fchmod on a socket. The folder is 0700 and every peer's user is checked.
func restrict(uintptr) {}

func oddSocket(fs.FileInfo) bool { return false }
