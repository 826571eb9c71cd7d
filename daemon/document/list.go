package document

import (
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

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/redact"
)

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
