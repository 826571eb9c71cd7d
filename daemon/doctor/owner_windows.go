package doctor

import "io/fs"

// ours is true on Windows: who owns a file is in access lists, which are not checked.
func ours(fs.FileInfo) bool { return true }
