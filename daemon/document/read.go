package document

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Stamp tells the states of a file apart, as far as its directory entry can. Times are in Unix nanoseconds.
type Stamp struct {
	Size       int64
	ModTime    int64
	ChangeTime int64  // 0 where the system has none
	Inode      uint64 // the same
}

// coarseTick is the coarsest clock of a file system: FAT dates by two seconds.
const coarseTick = 2 * time.Second

// Settled says whether the stamp is so old that an unchanged one proves unchanged bytes: another write within a tick
// of the file system's clock would leave it as it is. One of the future never is.
func (s Stamp) Settled(now time.Time) bool {
	return now.UnixNano()-max(s.ModTime, s.ChangeTime) > int64(coarseTick)
}

// ErrGone says that a document is not there.
var ErrGone = errors.New("the file is not there")

// Content is what a document holds.
type Content struct {
	Stamp  Stamp
	Path   string // where the file lies: absolute, links resolved
	Size   int64
	SHA256 string // hex; "" when TooLarge
	Bytes  []byte // nil when there are more than were to be kept
	// TooLarge says that there is more than was to be read; then only Stamp and Size are known.
	TooLarge bool
	// Torn says that somebody wrote while it was read: what was read may never have been the file's content.
	Torn bool
}

// Stamp looks at a document without opening it. Its errors are those of Read.
func (f *Folder) Stamp(name string) (Stamp, error) {
	info, err := f.root.Stat(filepath.FromSlash(name))
	if err != nil {
		return Stamp{}, f.cannotRead(name, err)
	}
	if !info.Mode().IsRegular() {
		return Stamp{}, notAFile(name, info)
	}
	return StampOf(info), nil
}

// Read reads a document of at most limit bytes, and keeps its bytes when there are at most keep. ErrGone when it is not
// there; any other error is a *Refusal.
func (f *Folder) Read(name string, limit, keep int64) (Content, error) {
	file, info, path, err := f.open(name)
	if missing(err) {
		return Content{}, ErrGone
	}
	if err != nil {
		return Content{}, err
	}
	defer file.Close()
	c := Content{Stamp: StampOf(info), Path: path, Size: info.Size()}
	if c.Size > limit {
		c.TooLarge = true
		return c, nil
	}
	sum := sha256.New()
	r := io.TeeReader(io.LimitReader(file, limit+1), sum)
	var n int64
	if c.Size <= keep {
		c.Bytes, err = io.ReadAll(io.LimitReader(r, keep+1))
		n = int64(len(c.Bytes))
	} else {
		n, err = io.Copy(io.Discard, r)
	}
	if err != nil {
		return Content{}, f.cannotRead(name, err)
	}
	after, err := file.Stat()
	if err != nil {
		return Content{}, f.cannotRead(name, err)
	}
	c.Torn = n != c.Size || StampOf(after) != c.Stamp
	c.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return c, nil
}

// Open opens a document for reading. The caller closes it. Its errors are those of Read, and what is missing wraps
// fs.ErrNotExist.
func (f *Folder) Open(name string) (*os.File, fs.FileInfo, error) {
	file, info, _, err := f.open(name)
	return file, info, err
}

// open opens a document for reading, and says where it lies. What was opened is what was looked at, and it is a regular
// file that the guard lets through: a pipe does not block, a device is not touched. An error that is missing passes as
// it is; others are a *Refusal.
func (f *Folder) open(name string) (file *os.File, info fs.FileInfo, path string, err error) {
	local := filepath.FromSlash(name)
	info, err = f.root.Stat(local)
	if err == nil && !info.Mode().IsRegular() {
		return nil, nil, "", notAFile(name, info)
	}
	if err == nil {
		file, err = f.root.OpenFile(local, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	}
	if err != nil {
		if missing(err) {
			return nil, nil, "", fmt.Errorf("open document: %w", err)
		}
		return nil, nil, "", f.cannotRead(name, err)
	}
	info, err = file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notAFile(name, info)
	}
	if err == nil {
		path, err = Resolve(f.Path(name), info)
	}
	if err == nil && f.Guard != nil {
		err = f.Guard(path, info)
	}
	if err != nil {
		file.Close()
		if missing(err) {
			return nil, nil, "", fmt.Errorf("open document: %w", err)
		}
		return nil, nil, "", f.cannotRead(name, err)
	}
	return file, info, path, nil
}

// Resolve answers where a file lies that was opened by an absolute path: the path with its links resolved. An error is a
// *Refusal when something else lies there by now.
func Resolve(path string, opened fs.FileInfo) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("resolve links: %w", err)
	}
	now, err := os.Stat(real)
	if err != nil {
		return "", fmt.Errorf("resolve links: %w", err)
	}
	if !os.SameFile(now, opened) {
		return "", refuse("try again", "%s is being replaced", filepath.Base(path))
	}
	return real, nil
}

// cannotRead is the error for a document that cannot be looked at.
func (f *Folder) cannotRead(name string, err error) error {
	if missing(err) {
		return ErrGone
	}
	if known, ok := errors.AsType[*Refusal](err); ok {
		return known
	}
	if info, e := f.root.Lstat(filepath.FromSlash(name)); e == nil && info.Mode()&fs.ModeSymlink != 0 {
		return refuse("put the file itself there", "%s is a link that leads out of the session's working directory", name)
	}
	return refuse("make it readable for this user", "%s cannot be read: %s", name, reason(err))
}
