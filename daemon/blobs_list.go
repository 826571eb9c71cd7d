package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/ccship/ccship/daemon/document/file"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// Claude Code leaves small files beside a transcript, in the session's folder: tool output too long for a line, and what
// is said of an agent when it is started. Each appears once, at about the time of the line that speaks of it, so they
// need no watch: the folder is listed when lines of the session have come in.

// besideFile is a file beside a transcript, as it is listed.
type besideFile struct {
	name string // path below the session's folder, slashes
	info fs.FileInfo
}

// sessionFolder is the folder beside a main transcript, below its root, with slashes.
func sessionFolder(f tail.File) string { return strings.TrimSuffix(wirePath(f), ".jsonl") }

// listBeside lists the files beside a main transcript that are delivered: regular ones, in folders that are no links.
// A folder that is not there is empty.
func listBeside(root *os.Root, folder string) ([]besideFile, error) {
	var files []besideFile
	spilled := func(name string) bool { return strings.HasSuffix(name, ".txt") || strings.HasSuffix(name, ".json") }
	about := func(name string) bool { return strings.HasSuffix(name, ".meta.json") }
	if there, err := isFolder(root, folder); !there {
		return nil, err
	}
	add := func(dir string, wanted func(name string) bool) ([]fs.DirEntry, error) {
		entries, err := listFolder(root, path.Join(folder, dir))
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if !e.Type().IsRegular() || !wanted(e.Name()) || len(name) > state.MostBesideName {
				continue
			}
			if info, err := e.Info(); err == nil { // else it has just gone
				files = append(files, besideFile{name, info})
			}
		}
		return entries, err
	}
	_, err := add("tool-results", spilled)
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

// isFolder says whether a folder is there, and no link.
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

// errChanging says that a file is another one than was listed, or is just being written.
var errChanging = errors.New("it is changing")

// readBeside hashes a listed file. A small one is returned whole, and never as nil; a longer one is nil.
func readBeside(root *os.Root, folder string, listed *besideFile) (f state.BesideFile, content []byte, err error) {
	file, err := root.Open(path.Join(folder, listed.name))
	if err != nil {
		return f, nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return f, nil, err
	}
	if !info.Mode().IsRegular() || !os.SameFile(info, listed.info) {
		return f, nil, errChanging
	}
	f = state.BesideFile{Name: listed.name, Size: info.Size(), ModTime: info.ModTime().UnixNano()}
	sum := sha256.New()
	if f.Size <= outbox.BlobInRow {
		content = make([]byte, f.Size)
		if _, err := io.ReadFull(file, content); err != nil {
			return f, nil, fmt.Errorf("%w: %w", errChanging, err)
		}
		sum.Write(content)
	} else if n, err := io.Copy(sum, io.LimitReader(file, f.Size)); err != nil || n < f.Size {
		return f, nil, errors.Join(errChanging, err)
	}
	after, err := file.Stat()
	if err == nil && (after.Size() != f.Size || !after.ModTime().Equal(info.ModTime())) {
		err = errChanging
	}
	f.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return f, content, err
}

// besideMedia is the media type of a file beside a transcript.
func besideMedia(name string) string {
	if strings.HasSuffix(name, ".json") {
		return "application/json"
	}
	return "text/plain"
}

// blobFile is a file that is read while it is sent.
type blobFile struct {
	*os.File
	info fs.FileInfo
}

// Size implements outbox.Content.
func (f blobFile) Size() int64 { return f.info.Size() }

// openBlob opens a file that is to be sent: a regular one below root that guard lets through, whatever the links on the
// way say by now.
func openBlob(root, name string, guard file.Guard) (outbox.Content, error) {
	folder, err := file.OpenFolder(root)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	folder.Guard = guard
	file, info, err := folder.Open(name)
	if err != nil {
		return nil, err
	}
	return blobFile{file, info}, nil
}
