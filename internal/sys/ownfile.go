package sys

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// OpenOwn opens a file that ccship made, or makes it with mode 0600. In a folder that others can write to they may have
// put something else in its place: a link, a pipe or a file of another user than this one and root is refused. The
// error wraps fs.ErrPermission.
func OpenOwn(path string, flag int) (*os.File, error) {
	f, err := openPlain(path, flag)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		if uid, known := owner(info); !info.Mode().IsRegular() || known && !TrustedPeer(uid) {
			err = notOwn(path)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func notOwn(path string) error {
	return fmt.Errorf("%s is not a file of this user: remove it, or name another folder (%w)", path, fs.ErrPermission)
}

// ReadOwn is os.ReadFile with OpenOwn.
func ReadOwn(path string) ([]byte, error) {
	f, err := OpenOwn(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	return text, errors.Join(err, f.Close())
}
