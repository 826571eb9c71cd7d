package kit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// owner is the file in a folder that its process holds locked for as long as it lives.
const owner = ".owner"

// Scratch is a folder of this process.
type Scratch struct {
	Path string
	lock *os.File
}

// MakeScratch makes a folder in another one, or in the system's for such for "". Its name begins with prefix. It first
// removes the folders of that prefix whose processes are gone.
func MakeScratch(in, prefix string) (*Scratch, error) {
	if in == "" {
		in = os.TempDir()
	}
	sweep(in, prefix)
	dir, err := os.MkdirTemp(in, prefix)
	if err != nil {
		return nil, fmt.Errorf("make a folder for tests: %w", err)
	}
	lock, err := own(dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a folder for tests: %w", err), os.RemoveAll(dir))
	}
	return &Scratch{dir, lock}, nil
}

// Remove removes the folder.
func (f *Scratch) Remove() error {
	err := os.RemoveAll(f.Path)
	if f.lock != nil {
		err = errors.Join(err, f.lock.Close())
	}
	return err
}

// sweep removes what it can. What it cannot is in nobody's way.
func sweep(in, prefix string) {
	list, _ := os.ReadDir(in)
	for _, e := range list {
		if dir := filepath.Join(in, e.Name()); e.IsDir() && strings.HasPrefix(e.Name(), prefix) && abandoned(dir) {
			_ = os.RemoveAll(dir)
		}
	}
}
