//go:build unix

package sys

import (
	"io/fs"
	"syscall"
)

// owner returns the user id that a file belongs to.
func owner(info fs.FileInfo) (uid int, known bool) {
	st, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return int(st.Uid), true
}
