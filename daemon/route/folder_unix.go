//go:build unix

package route

import (
	"fmt"
	"io/fs"
	"syscall"
)

// folderID returns the device and inode of a folder; "" where that is not known.
func folderID(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}
