package doctor

import "io/fs"

// ours says whether a file belongs to the user who asks; Windows keeps that in access lists, which are not looked at.
func ours(fs.FileInfo) bool { return true }
