package usage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// file is a transcript on disk.
type file struct {
	path  string
	parts []string // of its path below the projects folder
	bytes int64
}

// walker finds the transcripts below projects folders, each folder once, also behind symbolic links.
type walker struct {
	seen   map[string]bool // real paths of folders
	files  []file
	faults func(Fault)
}

// find lists the transcripts below roots in the order of their paths. A root need not exist.
func find(roots []string, faults func(Fault)) []file {
	w := walker{seen: map[string]bool{}, faults: faults}
	for _, root := range roots {
		if _, err := os.Stat(root); err == nil {
			w.folder(root, nil)
		}
	}
	slices.SortFunc(w.files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return w.files
}

// maxDepth is how deep folders are searched below a projects folder; Claude Code needs five.
const maxDepth = 16

func (w *walker) folder(dir string, parts []string) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || w.seen[real] || len(parts) > maxDepth {
		return
	}
	w.seen[real] = true
	entries, err := os.ReadDir(dir)
	if err != nil {
		w.faults(Fault{Path: dir, Why: reason(err)})
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path) // what a link leads to
		if err != nil {
			continue // it is gone, or leads nowhere
		}
		inside := append(slices.Clone(parts), e.Name())
		switch {
		case info.IsDir():
			w.folder(path, inside)
		case info.Mode().IsRegular() && strings.HasSuffix(e.Name(), ".jsonl"):
			w.files = append(w.files, file{path: path, parts: inside, bytes: info.Size()})
		}
	}
}

// reason is an error without the path, which is told beside it.
func reason(err error) string {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		return inner.Err.Error()
	}
	return err.Error()
}

// session is the session that a transcript's answers belong to, "" if its path does not say: that of an old agent's
// transcript beside the sessions.
func (f *file) session() string {
	switch name := strings.TrimSuffix(f.parts[len(f.parts)-1], ".jsonl"); {
	case len(f.parts) > 2:
		return f.parts[1]
	case strings.HasPrefix(name, "agent-"):
		return ""
	default:
		return name
	}
}
