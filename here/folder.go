package here

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ownFolder makes a folder that only this user can use, or checks that it is one.
func ownFolder(dir string) (string, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() || !private(info) {
		return "", fmt.Errorf("%s is not a private folder of this user", dir)
	}
	return dir, nil
}
