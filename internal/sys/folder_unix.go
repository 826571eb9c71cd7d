//go:build !windows

package sys

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// SyncFolder makes the names in a folder durable, where the file system can: some network file systems cannot.
func SyncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	if err = d.Sync(); errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	if err = errors.Join(err, d.Close()); err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	return nil
}
