//go:build unix

package sys

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openPlain opens a path that is neither followed, if it is a link, nor waited for, if it is a pipe.
func openPlain(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		return nil, notOwn(path)
	}
	return f, err
}
