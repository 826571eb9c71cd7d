package kv

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// mmapSize is 0, for bbolt would make the file as large as the map on Windows.
const mmapSize = 0

// FreeDisk answers the bytes that may still be written to the disk of a folder, and the size of the disk.
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

// syncDir does nothing: Windows keeps the names of a folder safe by itself, and can't flush one.
func syncDir(string) error { return nil }
