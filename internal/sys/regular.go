package sys

import (
	"errors"
	"io/fs"
	"os"
)

// ErrNotFile is wrapped by the error of OpenRegular for a pipe, a folder, a device or a socket.
var ErrNotFile = errors.New("not a regular file")

// OpenRegular opens a regular file, or what a link to one leads to, for reading. It never waits: what was a file a
// moment ago may be a pipe by now, and os.Open would wait for somebody who writes to it, perhaps for ever.
func OpenRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noWait, 0)
	notFile := &fs.PathError{Op: "open", Path: path, Err: ErrNotFile}
	if err != nil {
		if info, statErr := os.Stat(path); statErr == nil && !info.Mode().IsRegular() { // a socket cannot be opened
			err = notFile
		}
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notFile
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
