package document

import (
	"context"
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

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state/projection"
)

// maxChanging is how long a file may be written before it is read as it is.
const maxChanging = 30 * time.Second

// check is the check of one document.
type check struct {
	t        *Tracker
	loc      Location
	folder   *folder
	document trackedDocument
	edited   bool  // one of Claude's tools has changed the file
	line     int64 // of that tool's result; -1: none
}

// run finds out whether there is a new version, and publishes it. again: the document should be checked again soon.
func (c *check) run(ctx context.Context) (again bool, err error) {
	d := &c.document
	if d.elsewhere(identityOf(c.folder.self)) {
		return false, c.problem(elsewhereProblem)
	}
	stamp, err := c.folder.Stamp(d.Path)
	switch {
	case errors.Is(err, errGone):
		return c.gone(ctx)
	case err != nil:
		d.missing = false
		return false, c.problem(err.Error())
	}
	d.missing, d.problem = false, c.loc.problem()
	if !c.ready(stamp) {
		c.t.put(*d, false)
		return d.unproven || !d.changingSince.IsZero(), nil
	}
	content, err := c.folder.Read(d.Path, c.t.Settings.Config().DocumentCap, outbox.BlobInRow)
	if errors.Is(err, errGone) {
		return true, nil
	}
	if err != nil {
		return false, c.problem(err.Error())
	}
	if content.Torn && time.Since(d.changingSince) < maxChanging {
		c.changing(content.Stamp)
		return true, nil
	}
	return c.compare(ctx, &content)
}

// problem records why the document cannot be read. That is not an error of the check.
func (c *check) problem(why string) error {
	c.document.problem = why
	c.t.put(c.document, false)
	return nil
}

// changing notes that the file is being written.
func (c *check) changing(stamp projection.Stamp) {
	d := &c.document
	if d.newStamp = stamp; d.changingSince.IsZero() {
		d.changingSince = time.Now()
	}
	c.t.put(*d, false)
}

// ready reports whether to read the file now: it has changed and is no longer being written, or the server lacks it.
func (c *check) ready(stamp projection.Stamp) bool {
	d := &c.document
	if stamp == d.Stat && !d.Deleted {
		d.newStamp, d.changingSince = projection.Stamp{}, time.Time{}
		readable := d.TooLarge && d.Size <= c.t.Settings.Config().DocumentCap
		return readable || c.edited || c.unsent() || d.unproven && settled(stamp, time.Now())
	}
	if c.edited || stamp == d.newStamp || !d.changingSince.IsZero() && time.Since(d.changingSince) >= maxChanging {
		return true
	}
	c.changing(stamp)
	return false
}

// unsent reports whether the session's server lacks the last version, and it can be queued.
func (c *check) unsent() bool {
	return c.document.Dest != c.loc.Dest && c.t.canSend(c.loc)
}

// compare compares a content with the last version, and publishes a new version.
func (c *check) compare(ctx context.Context, content *content) (again bool, err error) {
	d := c.document
	c.loc = c.t.locationOf(c.loc, content.Path)
	same := !d.Deleted && content.Size == d.Size && content.SHA256 == d.SHA256 && content.TooLarge == d.TooLarge
	if content.TooLarge { // it was not read: compare the stamp
		same = same && content.Stamp == d.Stat
	}
	n := change{kind: kindModified, by: byOther, line: c.line, content: content, root: c.folder.Root()}
	if c.edited {
		n.by = byClaude
	}
	switch unsent := c.unsent(); {
	case same && !unsent:
		d.setStamp(content)
		d.problem = c.loc.problem()
		c.t.put(d, false)
		return d.unproven, nil
	case same:
		n.kind, n.by = kindLinked, d.AddedBy
		d.setStamp(content)
	default:
		d.newVersion(content, n.by)
		if unsent {
			n.kind, n.by = kindLinked, d.AddedBy // the server may not know the document at all
		}
	}
	d.problem = c.loc.problem()
	n.document = d
	return d.unproven, c.t.publish(ctx, c.loc, &n)
}

// gone handles a file that does not exist. The document counts as deleted if the next check does not find the file
// either: an editor may be replacing it.
func (c *check) gone(ctx context.Context) (again bool, err error) {
	d := c.document
	d.problem = c.loc.problem()
	if d.Deleted && !c.unsent() || !d.Deleted && !d.missing {
		d.missing = !d.Deleted
		c.t.put(d, false)
		return d.missing, nil
	}
	n := change{kind: kindDeleted, by: byOther, line: -1}
	if !d.Deleted {
		d.Version++
		d.ChangedAt, d.By = time.Now().UnixMilli(), n.by
	}
	d.Deleted, d.missing, d.Size, d.SHA256, d.TooLarge = true, false, 0, "", false
	d.Stat, d.newStamp, d.changingSince = projection.Stamp{}, projection.Stamp{}, time.Time{}
	n.document = d
	return false, c.t.publish(ctx, c.loc, &n)
}

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

// openFile is an open file of a known size. The caller closes it.
type openFile struct {
	file    *os.File
	content io.ReaderAt // what is sent of the file
	info    fs.FileInfo
}

// ReadAt reads what is sent of the file.
func (f *openFile) ReadAt(p []byte, offset int64) (int, error) { return f.content.ReadAt(p, offset) }

// Close closes the file.
func (f *openFile) Close() error { return f.file.Close() }

// Size returns how many bytes the file had when it was opened.
func (f *openFile) Size() int64 { return f.info.Size() }

// openToSend opens a regular file below root that guard permits (nil: all), for reading through mask (nil: unmasked).
// It checks the open file itself, because links on the way may have changed.
func openToSend(root, name string, guard guard, mask mask) (*openFile, error) {
	folder, err := openFolder(root)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	folder.Guard = guard
	f, info, err := folder.Open(name)
	if err != nil {
		return nil, err
	}
	open := &openFile{file: f, content: f, info: info}
	if mask != nil {
		open.content = mask(name, f, info.Size())
	}
	return open, nil
}
