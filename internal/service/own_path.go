package service

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// OwnPath returns the path of this program that an upgrade keeps: the one it was called by, if that leads to this
// program. Package managers put a link there, and each version of the program elsewhere.
func OwnPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find own program: %w", err)
	}
	called, err := exec.LookPath(os.Args[0])
	if err == nil {
		called, err = filepath.Abs(called)
	}
	one, errOne := os.Stat(self)
	other, errOther := os.Stat(called)
	if err == nil && errOne == nil && errOther == nil && os.SameFile(one, other) {
		return called, nil
	}
	return self, nil
}
