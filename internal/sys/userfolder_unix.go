//go:build unix

package sys

import (
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// UserFolder returns a folder of this machine that only this user can use: the same one for all processes of the user,
// whatever their environment. The system may empty it when it starts.
func UserFolder() (string, error) {
	uid := strconv.Itoa(os.Getuid())
	if info, err := os.Stat("/run/user/" + uid); err == nil && info.IsDir() && private(info) {
		return "/run/user/" + uid, nil
	}
	return ownFolder("/tmp/ccship-"+uid, "/var/tmp/ccship-"+uid)
}

// private reports whether a folder belongs to this user and no other user can use it.
func private(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid() && info.Mode().Perm()&0o077 == 0
}
