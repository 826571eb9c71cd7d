package show

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/ccship/ccship/daemon/control"
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

// serverName is the file name of the server's program.
func serverName() string {
	if runtime.GOOS == "windows" {
		return "ccship-server.exe"
	}
	return "ccship-server"
}

// FindServer is the path of ccship-server: next to this program, whose links are followed, or on PATH.
func FindServer() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find ccship-server: %w", err)
	}
	beside := []string{self}
	if real, err := filepath.EvalSymlinks(self); err == nil && real != self {
		beside = append(beside, real)
	}
	for _, program := range beside {
		path := filepath.Join(filepath.Dir(program), serverName())
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return lookPath(filepath.Dir(self))
}

// lookPath finds the server on PATH. next to is where it was looked for before.
func lookPath(beside string) (string, error) {
	path, err := exec.LookPath(serverName())
	if err != nil {
		return "", control.Failed(serverName()+" is neither in "+beside+" nor on PATH",
			"put it beside ccship; `make build` builds both")
	}
	return path, nil
}
