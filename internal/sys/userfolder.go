package sys

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ownFolder returns the first of some folders that only this user can use, else makes the first that can be made: where
// another user has taken one, all processes of this one agree on the next.
func ownFolder(dirs ...string) (string, error) {
	for _, dir := range dirs {
		if isOwn(dir) {
			return dir, nil
		}
	}
	var taken []error
	for _, dir := range dirs {
		err := os.Mkdir(dir, 0o700)
		if err == nil || isOwn(dir) { // another process of this user made it just now
			return dir, nil
		}
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%s is not a folder that only this user can use: remove it, or have its owner or root do so", dir)
		}
		taken = append(taken, err)
	}
	return "", errors.Join(taken...)
}

func isOwn(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && private(info)
}
