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

	"github.com/ccship/ccship/state/projection"
)

// coarseTick is the coarsest time resolution of a file system: FAT stores times in steps of two seconds.
const coarseTick = 2 * time.Second

// settled reports whether the stamp is old enough for an unchanged stamp to prove unchanged bytes: a second write
// within one tick of the file system's clock leaves the stamp as it is. A stamp from the future is never settled.
func settled(s projection.Stamp, now time.Time) bool {
	return now.UnixNano()-max(s.ModTime, s.ChangeTime) > int64(coarseTick)
}

// errGone is returned for a document that does not exist.
var errGone = errors.New("the file does not exist")

// content is the content of a document.
type content struct {
	Stamp  projection.Stamp
	Path   string // where the file lies: absolute, links resolved
	Size   int64
	SHA256 string // of Bytes, hex; "" when TooLarge
	Bytes  []byte // masked; nil if the content is larger than the keep limit
	// TooLarge is set if the file is larger than the read limit; then only Stamp, Path and Size are known.
	TooLarge bool
	// Torn is set if the file was written while it was read: these bytes may never have been its content.
	Torn bool
}

// Stamp returns a document's stamp without opening the file. Errors are those of Read.
func (f *folder) Stamp(name string) (projection.Stamp, error) {
	info, err := f.root.Stat(filepath.FromSlash(name))
	if err != nil {
		return projection.Stamp{}, f.cannotRead(name, err)
	}
	if !info.Mode().IsRegular() {
		return projection.Stamp{}, notAFile(name, info)
	}
	return stampOf(info), nil
}

// Read reads a document of at most limit bytes, and returns its bytes if there are at most keep. The error is ErrGone
// if the document does not exist; any other error is a *RefusedError.
func (f *folder) Read(name string, limit, keep int64) (content, error) {
	file, info, path, err := f.open(name, false)
	if missing(err) {
		return content{}, errGone
	}
	if err != nil {
		return content{}, err
	}
	defer file.Close()
	c := content{Stamp: stampOf(info), Path: path, Size: info.Size()}
	if c.Size > limit {
		c.TooLarge = true
		return c, nil
	}
	source := io.LimitReader(file, limit+1)
	if f.Mask != nil {
		source = io.NewSectionReader(f.Mask(name, file, c.Size), 0, c.Size)
	}
	sum := sha256.New()
	r := io.TeeReader(source, sum)
	var n int64
	if c.Size <= keep {
		c.Bytes, err = io.ReadAll(io.LimitReader(r, keep+1))
		n = int64(len(c.Bytes))
	} else {
		n, err = io.Copy(io.Discard, r)
	}
	if err != nil {
		return content{}, f.cannotRead(name, err)
	}
	after, err := file.Stat()
	if err != nil {
		return content{}, f.cannotRead(name, err)
	}
	c.Torn = n != c.Size || stampOf(after) != c.Stamp
	c.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return c, nil
}

// Open opens a document for reading. The caller closes it. The error for a missing document wraps fs.ErrNotExist; any
// other error is a *RefusedError.
func (f *folder) Open(name string) (*os.File, fs.FileInfo, error) {
	file, info, _, err := f.open(name, false)
	return file, info, err
}

// open opens a document for reading and returns its resolved path. It checks the open file itself: it is regular, and
// the guard permits it. A pipe does not block, a device is not touched. finding: the file is about to be linked. The
// error for a missing file wraps fs.ErrNotExist; any other error is a *RefusedError.
func (f *folder) open(name string, finding bool) (file *os.File, info fs.FileInfo, path string, err error) {
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
		path, err = resolve(f.Path(name), info)
	}
	if err == nil && f.Guard != nil {
		err = f.Guard(path, info)
	}
	if err == nil {
		err = f.checkPrivate(name, path, finding)
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

// resolve returns the real path of a file that was opened by an absolute path. The error is a *RefusedError if another
// file lies there by now.
func resolve(path string, opened fs.FileInfo) (string, error) {
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

// cannotRead turns an error of the system into what Read returns.
func (f *folder) cannotRead(name string, err error) error {
	if missing(err) {
		return errGone
	}
	if known, ok := errors.AsType[*refusedError](err); ok {
		return known
	}
	if info, e := f.root.Lstat(filepath.FromSlash(name)); e == nil && info.Mode()&fs.ModeSymlink != 0 {
		return refuse("put the file itself there", "%s is a link to a file outside the session's working directory", name)
	}
	return refuse("make it readable by this user", "cannot read %s: %s", name, reason(err))
}
