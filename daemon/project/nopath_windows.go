package project

import (
	"errors"
	"syscall"
)

// The errors of a path that leads nowhere, beyond those that Go takes for "does not exist".
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

// isNoPath says that a path leads nowhere: through a file, in a circle of links, or over a name no disk can hold.
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
