package tail

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// ownChangeTime: Stat.ChangeTime is the system's own, which no program can set.
const ownChangeTime = false

// handle is an open transcript. No descriptor stays open between inspections.
type handle struct{ *os.File }

// openHandle opens a transcript for reading and lets its owner write, rename and delete it meanwhile.
func openHandle(path string) (*handle, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	fd, err := windows.CreateFile(name, windows.GENERIC_READ, share, nil, windows.OPEN_EXISTING,
		windows.FILE_ATTRIBUTE_NORMAL|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &handle{os.NewFile(uintptr(fd), path)}, nil
}

func (h *handle) stat() (Stat, bool, error) {
	info, err := h.Stat()
	if err != nil {
		return Stat{}, false, fmt.Errorf("stat: %w", err)
	}
	return statOf(info), info.Mode().IsRegular(), nil
}

// statOf has no device, inode and change time: listings do not have them on Windows. Moves are recognised by name.
func statOf(info fs.FileInfo) Stat {
	m := info.ModTime().UnixNano()
	return Stat{Size: info.Size(), ModTime: m, ChangeTime: m}
}

func typeOf(info fs.FileInfo) entryType {
	switch {
	case info.Mode().IsRegular():
		return regular
	case info.IsDir():
		return directory
	}
	return other
}

// look answers what is at a path, as a listing would. Links are not followed: a listing has no inode to tell two names
// of one file by.
func look(path string) (entry, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return entry{}, err
	}
	e := entry{stat: statOf(info), kind: typeOf(info), link: info.Mode()&fs.ModeSymlink != 0}
	if e.link {
		e.kind, e.why = other, "links are not followed on Windows"
	}
	return e, nil
}

// listFolder appends the wanted entries of a folder. With follow the folder may be a symbolic link.
func listFolder(into []entry, path string, follow bool, wants func(string) bool) ([]entry, Stat, error) {
	info, err := os.Lstat(path)
	if err == nil && follow {
		info, err = os.Stat(path)
	}
	if err != nil {
		return into, Stat{}, err
	}
	if !info.IsDir() {
		return into, Stat{}, &fs.PathError{Op: "list", Path: path, Err: windows.ERROR_DIRECTORY}
	}
	dir, err := os.Open(path)
	if err != nil {
		return into, Stat{}, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return into, Stat{}, fmt.Errorf("list %s: %w", path, err)
	}
	for _, name := range names {
		if !wants(name) {
			continue
		}
		// The folder's data about a file being written is stale on Windows; the file's own is not.
		e, err := look(filepath.Join(path, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return into, statOf(info), fmt.Errorf("lstat %s in %s: %w", name, path, err)
		default:
			e.name = name
			into = append(into, e)
		}
	}
	return into, statOf(info), nil
}

// outOfWatches reports whether the system has no more watches or descriptors.
func outOfWatches(err error) bool {
	return errors.Is(err, windows.ERROR_TOO_MANY_OPEN_FILES) || errors.Is(err, windows.ERROR_NO_SYSTEM_RESOURCES)
}

// notFolder reports whether the path is not a folder.
func notFolder(err error) bool { return errors.Is(err, windows.ERROR_DIRECTORY) }
