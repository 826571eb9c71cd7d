package sys

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// AtomicFile is a file on its way to its name. Nobody finds it before Commit.
type AtomicFile struct {
	*os.File
	path   string
	sealed bool
	fault  func(step string) error // tests fail a step here; nil fails none
}

// CreateFile begins a file that is to be named path, in the same folder, with mode 0600. The caller ends it with
// Commit, CommitNew or Discard.
func CreateFile(path string) (*AtomicFile, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*") // 0600
	if err != nil {
		return nil, err
	}
	return &AtomicFile{File: f, path: path}, nil
}

// Seal makes the content durable and closes the file, for a caller that reads it again before it gets its name.
func (f *AtomicFile) Seal() error {
	if f.sealed {
		return nil
	}
	if err := errors.Join(f.do("sync", f.Sync), f.do("close", f.Close)); err != nil {
		return err
	}
	f.sealed = true
	return nil
}

// Commit makes the content durable, gives the file its name, and makes the name durable. A file of that name is
// replaced. An error before the last step leaves the old file as it was.
func (f *AtomicFile) Commit() error { return f.commit(os.Rename) }

// CommitNew is Commit for a new name. If the file exists, the error is fs.ErrExist.
func (f *AtomicFile) CommitNew() error { return f.commit(nameNew) }

func (f *AtomicFile) commit(name func(temp, path string) error) error {
	defer f.Discard()
	if err := f.Seal(); err != nil {
		return err
	}
	if err := f.do("name", func() error { return name(f.Name(), f.path) }); err != nil {
		return err
	}
	return f.do("sync folder", func() error { return SyncFolder(filepath.Dir(f.path)) })
}

// do takes one step, or fails as a test asks.
func (f *AtomicFile) do(step string, do func() error) error {
	if f.fault != nil {
		if err := f.fault(step); err != nil {
			return err
		}
	}
	return do()
}

func nameNew(temp, path string) error {
	err := os.Link(temp, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, there := os.Lstat(path); errors.Is(there, fs.ErrNotExist) { // a file system without links
		return os.Rename(temp, path)
	}
	return err
}

// Discard removes what is left of the file. After Commit or CommitNew nothing is.
func (f *AtomicFile) Discard() {
	_ = f.Close() // a second time does nothing
	_ = os.Remove(f.Name())
}

// WriteFile makes path hold data and nothing else, with mode 0600. Where path is a link, the file that it leads to is
// replaced: people keep their settings elsewhere and link to them.
func WriteFile(path string, data []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	f, err := CreateFile(path)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if _, err = f.Write(data); err == nil {
		err = f.Commit()
	}
	if err != nil {
		f.Discard()
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
