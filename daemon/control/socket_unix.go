//go:build unix

package control

import (
	"os"
	"syscall"
)

// foreign reports whether the socket at a path belongs to another user, whose daemon hangs up on us.
func foreign(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) != os.Geteuid() && os.Geteuid() != 0
}
