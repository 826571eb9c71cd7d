package library

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ccship/ccship/tail"
)

// file is a transcript on disk.
type file struct {
	tail.File
	folder string // the name of its project's folder
}

// find lists the transcripts below roots in the order of their paths. A root need not exist.
func find(roots []string, faults func(Fault)) (files []file) {
	for _, root := range roots {
		tail.Walk(root, func(f tail.File) {
			files = append(files, file{f, filepath.Base(f.ProjectFolder())})
		}, func(dir string, err error) { faults(Fault{Path: dir, Why: reason(err)}) })
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.Path, b.Path) })
	return files
}

// reason returns an error without the path, which is shown with it.
func reason(err error) string {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		return inner.Err.Error()
	}
	return err.Error()
}

// session returns the session that a transcript's answers belong to, "" if its path does not say: that of an old
// agent's transcript next to the sessions.
func (f *file) session() string {
	session, _, nested := strings.Cut(f.Name, "/")
	if f.Kind == tail.Agent && !nested {
		return ""
	}
	return session
}
