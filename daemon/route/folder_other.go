//go:build !unix

package route

import "io/fs"

// folderID is "": the system says no more of a folder than its name.
func folderID(fs.FileInfo) string { return "" }
