//go:build unix

package kit

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// own makes a folder this process's: the kernel gives the lock back when the process ends, however it does. The file
// has its name only once it is locked.
func own(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, owner+".new"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, owner))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// abandoned reports whether a folder was owned by a process of this user that is gone.
func abandoned(dir string) bool {
	f, err := os.OpenFile(filepath.Join(dir, owner), os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false
	}
	of, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(of.Uid) == os.Getuid() && syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
