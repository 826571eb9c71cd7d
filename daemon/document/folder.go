// Package document knows linked documents on disk: which paths may be linked, and how such a file is read without ever
// leaving the session's working directory, blocking, or mistaking half a write for a version. It does not know sessions
// or servers.
package document

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// maxPath is the longest path that is taken, in bytes.
const maxPath = 4096

// Refusal says why a file is not linked or read, and what to do about it. Each is one line.
type Refusal struct{ Message, Hint string }

func (r *Refusal) Error() string { return r.Message }

func refuse(hint, format string, args ...any) error {
	return &Refusal{Message: fmt.Sprintf(format, args...), Hint: hint}
}

// Guard says why a file may not be read; nil: it may. It is asked with where the file lies, absolute and links resolved,
// and with what is open there: a name alone proves nothing about a file.
type Guard func(path string, info fs.FileInfo) error

// Folder is a session's working directory. What is opened through it lies in it, whatever links do meanwhile.
type Folder struct {
	Guard Guard // nil: every file in the folder may be read. Set before use

	cwd  string // as the session names it
	root *os.Root
	self fs.FileInfo
}

// Open opens a working directory, which may be a link to one. Close it.
func Open(cwd string) (*Folder, error) {
	const hint = "documents are files in the folder that the session was started in"
	if !filepath.IsAbs(cwd) {
		return nil, refuse(hint, "the working directory of the session is not known")
	}
	dir, err := filepath.EvalSymlinks(cwd)
	if err == nil {
		var root *os.Root
		if root, err = os.OpenRoot(dir); err == nil {
			self, err := root.Stat(".")
			if err == nil {
				return &Folder{cwd: cwd, root: root, self: self}, nil
			}
			root.Close()
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refuse(hint, "the working directory %s is not there", cwd)
	}
	return nil, refuse(hint, "the working directory %s cannot be used: %s", cwd, reason(err))
}

// Close gives the folder back.
func (f *Folder) Close() error { return f.root.Close() }

// Root is the folder's absolute path.
func (f *Folder) Root() string { return f.root.Name() }

// Path is the absolute path of a document.
func (f *Folder) Path(name string) string {
	return filepath.Join(f.root.Name(), filepath.FromSlash(name))
}

// Find answers the name of the file that someone means by a path, which counts from base ("": the working directory)
// unless it is absolute: relative to the working directory, links resolved, slashes. The file is there, regular,
// readable, and inside; else the error is a *Refusal.
func (f *Folder) Find(base, path string) (name string, err error) {
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
		return "", refuse("a document must be there when it is linked; relative paths count from "+cmp.Or(base, f.cwd), "there is no file %s", path)
	case err != nil:
		return "", refuse("make it readable for this user", "%s cannot be found: %s", path, reason(err))
	}
	name, inside := f.inside(real)
	switch {
	case !inside:
		return "", refuse("only files inside it can be linked: copy the file there, or link it in a session that was started above it",
			"%s lies outside the session's working directory %s", path, f.cwd)
	case name == ".":
		return "", notAFile(path, f.self)
	}
	if err := checkPath(name); err != nil { // what a link leads to may be named otherwise
		return "", err
	}
	name = filepath.ToSlash(name)
	file, _, _, err := f.open(name)
	if missing(err) {
		return "", refuse("try again", "there is no file %s any more", path)
	}
	if err != nil {
		return "", err
	}
	return name, file.Close()
}

// inside finds an absolute path without links below the folder. Folders are compared as the system does, so a name in
// other letters' case, or another mount of the same folder, is understood.
func (f *Folder) inside(path string) (name string, ok bool) {
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

// Names are the names that someone may mean by a path whose file need not be there any more.
func (f *Folder) Names(base, path string) []string { return Names(base, path, f.cwd, f.root.Name()) }

// Names are the names relative to one of some folders that a path, which counts from base or else from the first of
// them, stands for as it is written.
func Names(base, path string, folders ...string) (names []string) {
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

// Same says whether two names are one file, written in other letters' case.
func (f *Folder) Same(a, b string) bool {
	if !strings.EqualFold(a, b) {
		return false
	}
	x, errX := f.root.Stat(filepath.FromSlash(a))
	y, errY := f.root.Stat(filepath.FromSlash(b))
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// checkPath refuses names that no message, screen or prompt can carry.
func checkPath(path string) error {
	const hint = "rename the file"
	switch {
	case path == "":
		return refuse("name a file", "the path is empty")
	case len(path) > maxPath:
		return refuse("name it by a shorter path", "the path is %d bytes long, more than %d", len(path), maxPath)
	case strings.ContainsRune(path, 0):
		return refuse("name a file", "the path has a zero byte in it")
	case !utf8.ValidString(path):
		return refuse(hint, "the name %q is not UTF-8", path)
	case strings.ContainsFunc(path, unseen):
		return refuse(hint, "the name %q has control characters in it", path)
	}
	return nil
}

// unseen says whether a character ends a line, or is not seen, or has others seen in another order.
func unseen(r rune) bool {
	switch {
	case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069', r == '\u2028', r == '\u2029',
		r == '\u200b', r == '\u200e', r == '\u200f', r == '\ufeff':
		return true
	}
	return unicode.IsControl(r)
}

// missing says that a file is not there; also when its folder has become a file.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// reason is what an error of the system says, without the path.
func reason(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return err.Error()
}

// notAFile refuses what is no regular file by what it is.
func notAFile(path string, info fs.FileInfo) error {
	kind, hint := "no regular file", "only files can be linked"
	switch mode := info.Mode(); {
	case mode.IsDir():
		kind, hint = "a directory", "link the files in it"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	}
	return refuse(hint, "%s is %s", path, kind)
}
