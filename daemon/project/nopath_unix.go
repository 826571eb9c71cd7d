//go:build !windows

package project

import (
	"errors"
	"syscall"
)

// isNoPath reports whether a path leads nowhere: through a file, in a loop of links, or with a name that no disk can
// hold.
func isNoPath(err error) bool {
	return errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) ||
		errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, syscall.EINVAL)
}
