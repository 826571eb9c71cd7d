package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// MaxLog is the size, in bytes, at which a log file is full and a new one begins.
const MaxLog = 8 << 20

// OwnPath is the path of this program that an upgrade keeps: the one it was called by, if that leads to this program.
// Package managers put a link there, and each version of the program elsewhere.
func OwnPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find own program: %w", err)
	}
	called, err := exec.LookPath(os.Args[0])
	if err == nil {
		called, err = filepath.Abs(called)
	}
	if err != nil {
		return self, nil //nolint:nilerr // the path it was called by is only the better one
	}
	one, errOne := os.Stat(self)
	other, errOther := os.Stat(called)
	if errOne == nil && errOther == nil && os.SameFile(one, other) {
		return called, nil
	}
	return self, nil
}

// Exists says whether a file or folder is there.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// SamePath says whether two paths lead to one file.
func SamePath(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := filepath.EvalSymlinks(a)
	y, errY := filepath.EvalSymlinks(b)
	return errX == nil && errY == nil && x == y
}
