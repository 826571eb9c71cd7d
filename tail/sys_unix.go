//go:build unix

package tail

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ownChangeTime: Stat.ChangeTime is the system's own, which no program can set.
const ownChangeTime = true

// handle is an open transcript. No descriptor stays open between inspections.
type handle struct{ fd int }

// openHandle opens a transcript for reading. A pipe does not block. Only a link to a regular file of this user is
// followed.
func openHandle(path string) (*handle, error) {
	const flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY
	h, err := openWith(path, flags|unix.O_NOFOLLOW)
	if !notFolder(err) {
		return h, err
	}
	if e, e2 := look(path); e2 != nil || !e.link || e.kind != regular || e.foreign {
		return nil, err
	}
	return openWith(path, flags)
}

func openWith(path string, flags int) (*handle, error) {
	for {
		fd, err := unix.Open(path, flags, 0)
		if err == nil {
			return &handle{fd}, nil
		}
		if err != unix.EINTR {
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

func (h *handle) Close() error { return unix.Close(h.fd) }

// ReadAt reads like io.ReaderAt.
func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		k, err := unix.Pread(h.fd, p[n:], off+int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return n, fmt.Errorf("read: %w", err)
		}
		if k == 0 {
			return n, io.EOF
		}
		n += k
	}
	return n, nil
}

// stat returns the stat of the open file, and whether it is a regular file.
func (h *handle) stat() (Stat, bool, error) {
	var st unix.Stat_t
	if err := unix.Fstat(h.fd, &st); err != nil {
		return Stat{}, false, fmt.Errorf("stat: %w", err)
	}
	return statOf(&st), typeOf(&st) == regular, nil
}

func statOf(st *unix.Stat_t) Stat {
	return Stat{
		Device: uint64(st.Dev), //nolint:unconvert // an int32 on macOS
		Inode:  st.Ino, Size: st.Size,
		ModTime: unix.TimespecToNsec(st.Mtim), ChangeTime: unix.TimespecToNsec(st.Ctim),
	}
}

func typeOf(st *unix.Stat_t) entryType {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return regular
	case unix.S_IFDIR:
		return directory
	}
	return other
}

// look answers what is at a path, as a listing would.
func look(path string) (entry, error) {
	e, err := lookAt(unix.AT_FDCWD, path)
	if err != nil {
		return entry{}, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return e, nil
}

// lookAt answers what a name in an open folder is. Nothing is opened: of a link only what it leads to is asked.
func lookAt(fd int, name string) (entry, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return entry{}, err
	}
	e := entry{name: name}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		e.link = true
		switch err := unix.Fstatat(fd, name, &st, 0); {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
			e.why = whyMissing
		case errors.Is(err, unix.ELOOP):
			e.why = whyLoop
		case err != nil:
			e.why = err.Error()
		}
	}
	e.stat, e.kind, e.foreign = statOf(&st), typeOf(&st), int(st.Uid) != os.Geteuid()
	switch {
	case !e.link:
	case e.why != "":
		e.kind = other
	case e.kind == other:
		e.why = whyKind
	case e.foreign:
		e.kind, e.why = other, whyForeign
	}
	return e, nil
}

// listFolder appends the wanted entries of a folder, and returns the folder's own stat. With follow the folder may be a
// symbolic link. Names are resolved relative to the open folder: that costs half of whole paths, and cannot mix two
// folders that replaced each other at one path.
func listFolder(into []entry, path string, follow bool, wants func(string) bool) ([]entry, Stat, error) {
	flags := os.O_RDONLY | unix.O_DIRECTORY
	if !follow {
		flags |= unix.O_NOFOLLOW
	}
	dir, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return into, Stat{}, err
	}
	defer dir.Close()
	var st unix.Stat_t
	fd := int(dir.Fd())
	// Before the names: a name that is added later is then also later than this stat, and shows in the next one.
	if err := unix.Fstat(fd, &st); err != nil {
		return into, Stat{}, fmt.Errorf("stat %s: %w", path, err)
	}
	self := statOf(&st)
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return into, self, fmt.Errorf("list %s: %w", path, err)
	}
	for _, name := range names {
		if !wants(name) {
			continue
		}
		e, err := lookAt(fd, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return into, self, fmt.Errorf("lstat %s in %s: %w", name, path, err)
		default:
			into = append(into, e)
		}
	}
	return into, self, nil
}

// outOfWatches reports whether the system has no more watches or descriptors.
func outOfWatches(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)
}

// notFolder reports whether the path is not a folder, or is a link that is not followed.
func notFolder(err error) bool {
	return errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EMLINK)
}
