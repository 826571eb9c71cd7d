//go:build !windows

package project

import (
	"errors"
	"syscall"
)

// isNoPath says that a path leads nowhere: through a file, in a circle of links, or over a name no disk can hold.
func isNoPath(err error) bool {
	return errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) ||
		errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, syscall.EINVAL)
}
