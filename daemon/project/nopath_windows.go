package project

import (
	"errors"
	"syscall"
)

// Errors for a path that leads nowhere, besides those that Go treats as "does not exist".
const (
	errorInvalidName        = syscall.Errno(123)
	errorFilenameTooLong    = syscall.Errno(206)
	errorDirectory          = syscall.Errno(267)
	errorCantResolveName    = syscall.Errno(1921)
	errorBadNetworkName     = syscall.Errno(67)
	errorInvalidDrive       = syscall.Errno(15)
	errorNotReady           = syscall.Errno(21) // a drive without a disk
	errorUnrecognisedVolume = syscall.Errno(1005)
)

// isNoPath reports whether a path leads nowhere: through a file, in a loop of links, or with a name that no disk can
// hold.
func isNoPath(err error) bool {
	for _, e := range []syscall.Errno{
		errorInvalidName, errorFilenameTooLong, errorDirectory, errorCantResolveName,
		errorBadNetworkName, errorInvalidDrive, errorNotReady, errorUnrecognisedVolume, syscall.EINVAL,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
