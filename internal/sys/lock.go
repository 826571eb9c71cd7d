package sys

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Holder describes a daemon that delivers a root. It is the content of the lock file.
type Holder struct {
	PID    int       `json:"pid"`
	State  string    `json:"state"`  // its state folder
	Socket string    `json:"socket"` // its control socket
	Roots  []string  `json:"roots"`  // what it delivers; set by Acquire
	Since  time.Time `json:"since"`
}

// HeldError is the error of Acquire when another daemon delivers a root.
type HeldError struct {
	Root   string
	Holder Holder // zero if the file could not be read
}

// Error implements error.
func (h *HeldError) Error() string {
	if h.Holder.PID == 0 {
		return "another ccship delivers " + h.Root + " already"
	}
	return fmt.Sprintf("another ccship delivers %s already: pid %d, state folder %s, since %s",
		h.Root, h.Holder.PID, h.Holder.State, h.Holder.Since.Local().Format("2006-01-02 15:04"))
}

// ErrLocked is the error of LockFile when another process has the lock.
var ErrLocked = errors.New("locked")

// Lock is held until Release, or until the process ends in any way.
type Lock struct{ files []*os.File }

// AcquireLock takes the locks of each root for the daemon that me describes. It does not wait: the error is a
// *HeldError if another daemon has one of them. Any other error means that locks do not work on this system.
func AcquireLock(roots []string, me Holder) (*Lock, error) {
	me.Roots = roots
	text, err := json.Marshal(me)
	if err != nil {
		return nil, fmt.Errorf("encode lock: %w", err)
	}
	names, err := files(roots)
	if err != nil {
		return nil, err
	}
	l := &Lock{}
	for _, name := range names {
		if err := l.take(name, text); err != nil {
			_ = l.Release() // only files with our own name
			return nil, err
		}
	}
	return l, nil
}

// RemoveLock removes the lock files of roots that no daemon delivers, and returns their names: those that a daemon left
// which was killed. With an error nothing is removed; it is a *HeldError if a daemon delivers a root.
func RemoveLock(roots []string) (removed []string, err error) {
	names, err := files(roots)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if _, err := os.Lstat(name.file); err == nil {
			removed = append(removed, name.file)
		}
	}
	l, err := AcquireLock(roots, Holder{})
	if err != nil {
		return nil, err
	}
	err = l.Release()
	return slices.DeleteFunc(removed, func(file string) bool { _, err := os.Lstat(file); return err == nil }), err
}

// take locks one file and writes who holds it.
func (l *Lock) take(name named, text []byte) error {
	f, err := openLocked(name.file)
	switch {
	case errors.Is(err, ErrLocked):
		holder := readHolder(name.file)
		if holder.left(name.key) {
			return nil
		}
		return &HeldError{Root: name.root, Holder: holder}
	case err != nil:
		return err
	}
	l.files = append(l.files, f)
	return write(f, text)
}

// LockFile takes the lock of a file, which it makes. It does not wait. The system drops the lock when the process ends,
// however it ends, so there is no stale lock to clean up.
func LockFile(name string) (*Lock, error) {
	f, err := openLocked(name)
	if err != nil {
		return nil, err
	}
	return &Lock{[]*os.File{f}}, nil
}

// openLocked opens and locks the file of a name. It tries again if the file was removed between the two: a lock on a
// file without a name would exclude nobody.
func openLocked(name string) (*os.File, error) {
	for {
		f, err := OpenOwn(name, os.O_RDWR|os.O_CREATE)
		if err != nil {
			return nil, err
		}
		if err := lock(f); err != nil {
			_ = f.Close() // of another process
			if errors.Is(err, ErrLocked) {
				return nil, err
			}
			return nil, fmt.Errorf("lock %s: %w", name, err)
		}
		if isNamed(f, name) {
			return f, nil
		}
		_ = f.Close()
	}
}

// isNamed reports whether an open file still has its name.
func isNamed(f *os.File, name string) bool {
	ours, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(name)
	return err == nil && os.SameFile(ours, named)
}

// left reports whether a holder's lock is on a folder that is no longer one of its roots: the root was removed, and the
// system gave its number to another folder.
func (h Holder) left(key string) bool {
	return h.PID != 0 && !slices.ContainsFunc(h.Roots, func(root string) bool { return slices.Contains(keys(root), key) })
}

// FindHolder returns the daemon that delivers one of the roots; false if there is none.
func FindHolder(roots []string) (Holder, bool) {
	l, err := AcquireLock(roots, Holder{})
	var held *HeldError
	if errors.As(err, &held) {
		return held.Holder, held.Holder.PID != 0
	}
	if err == nil {
		_ = l.Release()
	}
	return Holder{}, false
}

// Release removes the lock files and releases the locks, even if a process that is just being started has inherited the
// files. On Windows, where an open file stays, they are left.
func (l *Lock) Release() error {
	var errs []error
	for _, f := range l.files {
		if isNamed(f, f.Name()) { // else it was removed, and another daemon may have made one of its own
			_ = os.Remove(f.Name())
		}
		errs = append(errs, unlock(f), f.Close())
	}
	l.files = nil
	return errors.Join(errs...)
}

// named is a root and one of its lock files.
type named struct{ root, key, file string }

// files returns the lock files of the roots, each once, in an order that all processes share.
func files(roots []string) ([]named, error) {
	dir, err := UserFolder()
	if err != nil {
		return nil, err
	}
	var all []named
	for _, root := range roots {
		for _, key := range keys(root) {
			all = append(all, named{root, key, filepath.Join(dir, "ccship-"+key+".lock")})
		}
	}
	slices.SortFunc(all, func(a, b named) int { return strings.Compare(a.file, b.file) })
	return slices.CompactFunc(all, func(a, b named) bool { return a.file == b.file }), nil
}

// keys returns the names of a root's locks: the folder itself, which another path may lead to, and its name in its
// parent folder, which stays when the folder is replaced.
func keys(root string) []string {
	return []string{identity(root), identity(filepath.Dir(root)) + "-" + short(filepath.Base(root))}
}

// short returns a hash of a path that can be part of a file name.
func short(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:8])
}

// identity names a root by the device and inode of the folder that it resolves to. For a root that does not exist yet
// it uses the nearest existing folder, with the rest of the path.
func identity(root string) string {
	rest := ""
	for dir := root; ; dir = filepath.Dir(dir) {
		if id, ok := fileID(dir); ok {
			if rest == "" {
				return id
			}
			return id + "-" + short(rest)
		}
		if dir == filepath.Dir(dir) {
			return short(root)
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

func write(f *os.File, text []byte) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt(text, 0)
	return err
}

// readHolder returns the holder that a lock file names.
func readHolder(name string) (h Holder) {
	text, err := os.ReadFile(name)
	if err != nil || json.Unmarshal(text, &h) != nil {
		return Holder{}
	}
	return h
}
