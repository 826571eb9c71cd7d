package library

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

// File is a main transcript on disk.
type File struct {
	Session string // its name without .jsonl, as its stream is named
	Path    string
	Root    string
	Bytes   int64
	Changed time.Time
}

// Disk lists the main transcripts below roots, the last changed first. It skips folders that cannot be read.
func Disk(roots []string) (files []File) {
	for _, root := range roots {
		tail.Walk(root, func(f tail.File) {
			if f.Kind == tail.Main {
				files = append(files, File{
					Session: transcript.EscapeName(f.Name), Path: f.Path, Root: root, Bytes: f.Stat.Size,
					Changed: time.Unix(0, f.Stat.ModTime),
				})
			}
		}, func(string, error) {})
	}
	slices.SortFunc(files, func(a, b File) int {
		return cmp.Or(b.Changed.Compare(a.Changed), cmp.Compare(a.Path, b.Path))
	})
	return files
}

// Folder returns the working directory in which Claude Code finds a transcript; "" if it does not say.
func (f File) Folder() string {
	project := filepath.Base(filepath.Dir(f.Path))
	first := readHead(f.Path).FirstCwd
	if name, _ := folderName(first); name == project {
		return first
	}
	last, err := oldFolder(context.Background(), f.Path, project)
	if err != nil {
		return first
	}
	return last
}

// headBytes is how much of a transcript is read for its title and project.
const headBytes = 256 << 10

// head is the summary of a transcript's beginning.
type head struct{ session.Summary }

func readHead(path string) head {
	f, err := sys.OpenRegular(path)
	if err != nil {
		return head{}
	}
	defer f.Close()
	var s session.Fold
	lines := bufio.NewReaderSize(io.LimitReader(f, headBytes), 64<<10)
	for n := int64(0); ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return head{s.Summary()}
		}
		for _, r := range transcript.Records(line[:len(line)-1]) {
			s.Add(n, r)
		}
	}
}

// matches says whether a transcript of a project belongs to the filter's project and contains its text.
func (h head) matches(file File, f *Filter, project string) bool {
	folder := filepath.Base(filepath.Dir(file.Path))
	switch {
	case filepath.IsAbs(f.Project):
		if !startedIn(h.FirstCwd, f.Project) {
			return false
		}
	case f.Project != "" && f.Project != project && f.Project != folder:
		return false
	}
	text := strings.ToLower(transcript.Compose(f.Text))
	return text == "" || slices.ContainsFunc([]string{h.Title, h.FirstPrompt, project, file.Session}, func(s string) bool {
		return strings.Contains(strings.ToLower(transcript.Compose(s)), text)
	})
}

// project returns the name of a transcript's project. A worktree belongs to its repository.
func (l *Library) project(h *head, file File) string {
	if h.FirstCwd == "" {
		return filepath.Base(filepath.Dir(file.Path))
	}
	return l.ProjectOf(h.FirstCwd)
}

// ProjectOf returns the name of a working directory's project.
func (l *Library) ProjectOf(cwd string) string { return transcript.FolderName(l.repositoryOf(cwd)) }

func (l *Library) repositoryOf(cwd string) string {
	if l.Repository != nil {
		if repository := l.Repository(cwd); repository != "" {
			return repository
		}
	}
	return transcript.RepositoryOf(cwd)
}

// inProject reports whether a transcript is of the project with a name. The name may have folders in front, as the
// server writes it where several projects have one name.
func (l *Library) inProject(h *head, file File, name string) bool {
	return name == l.project(h, file) ||
		strings.Contains(name, "/") && strings.HasSuffix(filepath.ToSlash(l.repositoryOf(h.FirstCwd)), "/"+name)
}

// diskItem returns a session on disk. Numbers of its beginning would be wrong, so a long one has none.
func (l *Library) diskItem(ctx context.Context, file activeFile, known agents) Item {
	agents := known.of(file.File)
	h := readHead(file.Path)
	i := l.fileItem(&h, file, len(agents))
	if file.Bytes > countLimit {
		return i
	}
	if c, err := l.count(ctx, file.File, agents); err == nil {
		i.count(c)
	}
	return i
}

// count takes over what was counted.
func (i *Item) count(c counted) {
	i.Title = c.Title
	i.Messages, i.Tokens, i.Cost, i.Counts = c.Messages, c.Tokens, c.Cost, Complete
}

// fileItem returns what a transcript's beginning says of its session.
func (l *Library) fileItem(h *head, file activeFile, agents int) Item {
	return Item{
		Session: file.Session, State: OnDisk, Title: h.Title, Project: l.project(h, file.File),
		Cwd: h.FirstCwd, Machine: l.Machine, ChangedAt: file.at, Bytes: file.Bytes, Counts: Unknown,
		Agents: agents, Path: file.Path,
	}
}
