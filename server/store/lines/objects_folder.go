package lines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// objectFolder keeps each object in a file of its name.
type objectFolder struct{ root string }

func openFolder(u *url.URL) (objectStore, error) {
	path := u.Path
	if runtime.GOOS == "windows" {
		path = strings.TrimPrefix(path, "/") // before a drive's letter
	}
	return objectFolder{filepath.Clean(filepath.FromSlash(path))}, nil
}

func (f objectFolder) path(name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", fmt.Errorf("bad name of an object %q", name)
	}
	return filepath.Join(f.root, filepath.FromSlash(name)), nil
}

// Put implements Store. The file gets its name once its bytes are on disk.
func (f objectFolder) Put(_ context.Context, name string, data []byte) error {
	path, err := f.path(name)
	if err == nil {
		err = f.put(path, data)
	}
	return sqlstore.Wrap(err, "write object")
}

func (f objectFolder) put(path string, data []byte) error {
	var above []string // folders in which one is made
	for at := filepath.Dir(path); ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
			break
		}
		above = append(above, filepath.Dir(at))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := sys.CreateFile(path)
	if err != nil {
		return err
	}
	defer file.Discard()
	if _, err := file.Write(data); err != nil {
		return err
	}
	err = file.Commit()
	for _, dir := range above {
		err = cmp.Or(err, sys.SyncFolder(dir))
	}
	return err
}

// Get implements Store.
func (f objectFolder) Get(_ context.Context, name string, most int64) ([]byte, error) {
	path, err := f.path(name)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read object: %w", errNoObject)
	}
	if err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(file, most))
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	return data, nil
}

// Delete implements Store. Folders that are empty then go too.
func (f objectFolder) Delete(_ context.Context, name string) error {
	path, err := f.path(name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove object: %w", err)
	}
	dir := filepath.Dir(path)
	if err := sys.SyncFolder(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("remove object: %w", err)
	}
	for up := dir; up != f.root && strings.HasPrefix(up, f.root) && os.Remove(up) == nil; {
		up = filepath.Dir(up)
	}
	return nil
}
