//go:build unix

package singleton

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// folder is where lock files are: the same for all processes of the user, whatever their environment.
func folder() (string, error) {
	uid := strconv.Itoa(os.Getuid())
	if info, err := os.Stat("/run/user/" + uid); err == nil && info.IsDir() && private(info) {
		return "/run/user/" + uid, nil
	}
	return ownFolder("/tmp/ccship-" + uid)
}

// private reports whether a folder belongs to this user and no other user can use it.
func private(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid() && info.Mode().Perm()&0o077 == 0
}

// fileID is the device and inode of what a path resolves to.
func fileID(path string) (string, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return "", false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", false
	}
	return fmt.Sprintf("%x-%x", s.Dev, s.Ino), true
}

func lock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return errLocked
		}
		return err
	}
}

func unlock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }
