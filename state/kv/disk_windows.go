package kv

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/windows"
)

// mmapSize is 0: on Windows bbolt would make the file as large as the map.
const mmapSize = 0

// FreeDisk returns the bytes that can still be written to the disk of a folder, and the size of the disk.
func FreeDisk(dir string) (free, total uint64, err error) {
	p, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, 0, fmt.Errorf("ask for free disk space: %w", err)
	}
	if err := windows.GetDiskFreeSpaceEx(p, &free, &total, nil); err != nil {
		return 0, 0, fmt.Errorf("ask for free disk space: %w", err)
	}
	return free, total, nil
}

// diskFailed reports whether the device or the file system failed.
func diskFailed(err error) bool {
	for _, number := range []syscall.Errno{
		windows.ERROR_CRC, windows.ERROR_IO_DEVICE, windows.ERROR_NOT_READY, windows.ERROR_FILE_CORRUPT,
		windows.ERROR_DISK_CORRUPT,
	} {
		if errors.Is(err, number) {
			return true
		}
	}
	return false
}
