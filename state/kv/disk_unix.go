//go:build unix

package kv

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// mmapSize is how much of the file is mapped from the start: address space only.
const mmapSize = initialMmap

// FreeDisk returns the bytes that can still be written to the disk of a folder, and the size of the disk.
func FreeDisk(dir string) (free, total uint64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, fmt.Errorf("ask for free disk space: %w", err)
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), nil
}

// diskFailed reports whether the device or the file system failed. bbolt keeps only the text of some errors.
func diskFailed(err error) bool {
	for _, number := range []syscall.Errno{unix.EIO, unix.ENXIO, unix.ENODEV, unix.ESTALE} {
		if errors.Is(err, number) || strings.HasSuffix(err.Error(), number.Error()) {
			return true
		}
	}
	return false
}
