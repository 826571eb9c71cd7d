package document

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/redact"
)

// maxPath is the longest accepted path, in bytes.
const maxPath = 4096

// refusedError says why a file is not linked or not read, and what to do about it. Each field is one line.
type refusedError struct{ Message, Hint string }

func (r *refusedError) Error() string { return r.Message }

func refuse(hint, format string, args ...any) error {
	return &refusedError{Message: fmt.Sprintf(format, args...), Hint: hint}
}

// guard returns why a file may not be read, or nil if it may. path is where the file lies, absolute and with links
// resolved; info describes the open file, because a name alone proves nothing about a file.
type guard func(path string, info fs.FileInfo) error

// mask returns a reader with the masked content of a file, of the same size in bytes. name is its path below the
// folder, with slashes.
type mask func(name string, content io.ReaderAt, size int64) io.ReaderAt

// folder is a session's working directory. A file opened through it lies inside it, even if links change meanwhile.
type folder struct {
	Guard guard // nil: every file in the folder may be read. Set it before use
	Mask  mask  // nil: files are read as they are. Set it before use

	// AllowPrivate lets Find find files that are Private. Set it before use.
	AllowPrivate bool

	cwd  string // as the session spells it
	root *os.Root
	self fs.FileInfo
}

// openFolder opens a working directory, or a link to one. The caller closes it. Errors are a *RefusedError.
func openFolder(cwd string) (*folder, error) {
	const hint = "documents must be files in the folder that the session was started in"
	if !filepath.IsAbs(cwd) {
		return nil, refuse(hint, "the working directory of the session is not known")
	}
	dir, err := filepath.EvalSymlinks(cwd)
	if err == nil {
		var root *os.Root
		if root, err = os.OpenRoot(dir); err == nil {
			self, err := root.Stat(".")
			if err == nil {
				return &folder{cwd: cwd, root: root, self: self}, nil
			}
			root.Close()
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refuse(hint, "the working directory %s does not exist", cwd)
	}
	return nil, refuse(hint, "cannot open the working directory %s: %s", cwd, reason(err))
}

// Close closes the folder.
func (f *folder) Close() error { return f.root.Close() }

// Root returns the folder's absolute path.
func (f *folder) Root() string { return f.root.Name() }

// Path returns the absolute path of a document.
func (f *folder) Path(name string) string {
	return filepath.Join(f.root.Name(), filepath.FromSlash(name))
}

// Find returns the name of the file at a path: relative to the working directory, links resolved, with slashes. A
// relative path starts at base, or at the working directory if base is "". The file exists, is regular, is readable and
// lies inside the working directory; otherwise the error is a *RefusedError.
func (f *folder) Find(base, path string) (name string, err error) {
	if err := checkPath(path); err != nil {
		return "", err
	}
	abs := path
	if !filepath.IsAbs(path) {
		abs = filepath.Join(cmp.Or(base, f.cwd), path)
	}
	real, err := filepath.EvalSymlinks(abs)
	switch {
	case missing(err):
		return "", refuse("a document must exist when it is linked; relative paths start at "+cmp.Or(base, f.cwd),
			"there is no file %s", path)
	case err != nil:
		return "", refuse("make it readable by this user", "cannot find %s: %s", path, reason(err))
	}
	name, inside := f.inside(real)
	switch {
	case !inside:
		return "", refuse("only files inside it can be linked: copy the file there, or link it in a session that was "+
			"started above it",
			"%s lies outside the session's working directory %s", path, f.cwd)
	case name == ".":
		return "", notAFile(path, f.self)
	}
	if err := checkPath(name); err != nil { // the target of a link may have another name
		return "", err
	}
	name = filepath.ToSlash(name)
	file, _, _, err := f.open(name, true)
	if missing(err) {
		return "", refuse("try again", "the file %s has just been removed", path)
	}
	if err != nil {
		return "", err
	}
	return name, file.Close()
}

// inside returns the name of an absolute, link-free path relative to the folder. Folders are compared by identity, so a
// spelling in another letter case, or another mount of the same folder, matches too.
func (f *folder) inside(path string) (name string, ok bool) {
	for dir := path; ; {
		if info, err := os.Stat(dir); err == nil && os.SameFile(info, f.self) {
			name, err = filepath.Rel(dir, path)
			return name, err == nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", false
		}
		dir = up
	}
}

// Names returns the names that a path may stand for, relative to the folder. The file need not exist any more.
func (f *folder) Names(base, path string) []string { return names(base, path, f.cwd, f.root.Name()) }

// names returns the names that a path as written may stand for, relative to each of the folders. A relative path starts
// at base, or at the first folder if base is "".
func names(base, path string, folders ...string) (names []string) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(cmp.Or(base, folders[0]), path)
	}
	for _, dir := range folders {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			names = append(names, filepath.ToSlash(rel))
		}
	}
	return names
}

// Same reports whether two names are one file, spelled in different letter case.
func (f *folder) Same(a, b string) bool {
	if !strings.EqualFold(a, b) {
		return false
	}
	x, errX := f.root.Stat(filepath.FromSlash(a))
	y, errY := f.root.Stat(filepath.FromSlash(b))
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// checkPath refuses paths that cannot be shown on a screen or in a prompt.
func checkPath(path string) error {
	const hint = "rename the file"
	switch {
	case path == "":
		return refuse("name a file", "the path is empty")
	case len(path) > maxPath:
		return refuse("name it by a shorter path", "the path is %d bytes long, more than %d", len(path), maxPath)
	case strings.ContainsRune(path, 0):
		return refuse("name a file", "the path contains a zero byte")
	case !utf8.ValidString(path):
		return refuse(hint, "the name %q is not UTF-8", path)
	case strings.ContainsFunc(path, invisible):
		return refuse(hint, "the name %q contains control characters", path)
	}
	return nil
}

// invisible reports whether a character ends a line, is not displayed, or changes the display order of others.
func invisible(r rune) bool {
	switch {
	case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069', r == '\u2028', r == '\u2029',
		r == '\u200b', r == '\u200e', r == '\u200f', r == '\ufeff':
		return true
	}
	return unicode.IsControl(r)
}

// missing reports that a file does not exist, including the case that its folder has become a file.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// reason returns the text of a system error without the path.
func reason(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return err.Error()
}

// notAFile refuses a path that is not a regular file, and names what it is.
func notAFile(path string, info fs.FileInfo) error {
	kind, hint := "not a regular file", "only regular files can be linked"
	switch mode := info.Mode(); {
	case mode.IsDir():
		kind, hint = "a directory", "link files inside it instead"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	}
	return refuse(hint, "%s is %s", path, kind)
}

// listedFile is an attachment found by listing.
type listedFile struct {
	name string // path below the session's folder, slashes
	info fs.FileInfo
}

// sessionFolder returns the name of the folder next to a main transcript.
func sessionFolder(f tail.File) string { return strings.TrimSuffix(filepath.Base(f.Path), ".jsonl") }

// list lists the attachments of a main transcript: regular files, in folders that are not links. A folder that does not
// exist is empty.
func list(root *os.Root, folder string) ([]listedFile, error) {
	var files []listedFile
	output := func(name string) bool { return strings.HasSuffix(name, ".txt") || strings.HasSuffix(name, ".json") }
	about := func(name string) bool { return strings.HasSuffix(name, ".meta.json") }
	if there, err := isFolder(root, folder); !there {
		return nil, err
	}
	add := func(dir string, wanted func(name string) bool) ([]fs.DirEntry, error) {
		entries, err := listFolder(root, path.Join(folder, dir))
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if !e.Type().IsRegular() || !wanted(e.Name()) || len(name) > projection.MaxAttachmentName {
				continue
			}
			if info, err := e.Info(); err == nil { // otherwise it was just removed
				files = append(files, listedFile{name, info})
			}
		}
		return entries, err
	}
	_, err := add("tool-results", output)
	agents, agentsErr := add("subagents", about)
	err = errors.Join(err, agentsErr)
	for _, e := range agents {
		if e.Name() != "workflows" || !e.IsDir() {
			continue
		}
		runs, runsErr := listFolder(root, path.Join(folder, "subagents", "workflows"))
		err = errors.Join(err, runsErr)
		for _, run := range runs {
			if run.IsDir() {
				_, runErr := add(path.Join("subagents", "workflows", run.Name()), about)
				err = errors.Join(err, runErr)
			}
		}
	}
	return files, err
}

// OnDisk hashes, as a server gets them, the attachments of a main transcript that are small enough to be sent; tooLarge
// counts the others. It leaves out a file that is changing: that one is queued later. root is the transcript's folder.
// unread is why a file or folder cannot be read.
func (c *Collector) OnDisk(root *os.Root, f tail.File, to *state.Routing) (
	files []projection.Attachment, tooLarge int, unread error,
) {
	folder, masker := sessionFolder(f), c.Masking.For(to.Dest, to.Stream.Cwd)
	listed, unread := list(root, folder)
	for i := range listed {
		if listed[i].info.Size() > c.Settings.BlobCap() {
			tooLarge++
			continue
		}
		read, _, err := listed[i].read(root, folder, masker)
		switch {
		case errors.Is(err, errChanging), errors.Is(err, fs.ErrNotExist):
		case err != nil:
			unread = err
		default:
			files = append(files, read)
		}
	}
	return files, tooLarge, unread
}

// isFolder reports whether a folder exists and is not a link.
func isFolder(root *os.Root, dir string) (bool, error) {
	info, err := root.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	return err == nil && info.IsDir(), err
}

func listFolder(root *os.Root, dir string) ([]fs.DirEntry, error) {
	if there, err := isFolder(root, dir); !there {
		return nil, err
	}
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

// errChanging means that a file was replaced after the listing, or is being written.
var errChanging = errors.New("the file is changing")

// read masks and hashes a file below the session's folder. It returns the whole content, never nil, if that fits into a
// row; otherwise nil.
func (l *listedFile) read(root *os.Root, folder string, masker *redact.Masker) (f projection.Attachment,
	content []byte, err error) {
	name := path.Join(folder, l.name)
	file, err := root.Open(name)
	if err != nil {
		return f, nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return f, nil, err
	}
	if !info.Mode().IsRegular() || !os.SameFile(info, l.info) {
		return f, nil, errChanging
	}
	f = projection.Attachment{Name: l.name, Size: info.Size(), ModTime: info.ModTime().UnixNano()}
	masked := io.NewSectionReader(masker.ReaderAt(name, file, f.Size), 0, f.Size)
	sum := sha256.New()
	if f.Size <= outbox.BlobInRow {
		content = make([]byte, f.Size)
		if _, err := io.ReadFull(masked, content); err != nil {
			return f, nil, fmt.Errorf("%w: %w", errChanging, err)
		}
		sum.Write(content)
	} else if n, err := io.Copy(sum, masked); err != nil || n < f.Size {
		return f, nil, errors.Join(errChanging, err)
	}
	after, err := file.Stat()
	if err == nil && (after.Size() != f.Size || !after.ModTime().Equal(info.ModTime())) {
		err = errChanging
	}
	f.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return f, content, err
}
