// Package scratch makes folders for test processes. One that a process left behind, because it was killed or panicked,
// is removed when the next one is made. For tests; no program links it.
package scratch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// owner is the file in a folder that its process holds locked for as long as it lives.
const owner = ".owner"

// Folder is a folder of this process.
type Folder struct {
	Path string
	lock *os.File
}

// Make makes a folder in another one, or in the system's for such for "". Its name begins with prefix. It first removes
// the folders of that prefix whose processes are gone.
func Make(in, prefix string) (*Folder, error) {
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
	return &Folder{dir, lock}, nil
}

// Remove removes the folder.
func (f *Folder) Remove() error {
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
