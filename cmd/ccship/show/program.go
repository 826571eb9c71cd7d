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

// FindProgram returns the path of a program of ccship: next to this one, whose links are followed, where packages and
// archives put it, or on PATH.
func FindProgram(name string) (string, error) {
	file := name
	if runtime.GOOS == "windows" {
		file += ".exe"
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	programs := []string{self}
	if real, err := filepath.EvalSymlinks(self); err == nil && real != self {
		programs = append(programs, real)
	}
	for _, program := range programs {
		path := filepath.Join(filepath.Dir(program), file)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	path, err := exec.LookPath(file)
	if err != nil {
		return "", control.Failed("the program "+name+" is neither beside "+self+" nor on PATH",
			"every package and archive of ccship contains it: put it into "+filepath.Dir(self))
	}
	return path, nil
}
