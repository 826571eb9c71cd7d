package control

import "io/fs"

// maxPath is the size of sun_path without its closing zero.
const maxPath = 107

// restrict does nothing: the folder's access list, inherited from the user's profile, keeps others out.
func restrict(uintptr) {}

// oddSocket reports whether Windows shows a Unix socket as an irregular file, a reparse point.
func oddSocket(info fs.FileInfo) bool { return info.Mode()&fs.ModeIrregular != 0 }
