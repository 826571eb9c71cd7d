package library

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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
	i.Messages, i.Tokens, i.Cost, i.Unpriced, i.Counts = c.Messages, c.Tokens, c.Cost, c.Unpriced, Complete
}

// fileItem returns what a transcript's beginning says of its session.
func (l *Library) fileItem(h *head, file activeFile, agents int) Item {
	return Item{
		Session: file.Session, State: OnDisk, Title: h.Title, Project: l.project(h, file.File),
		Cwd: h.FirstCwd, Machine: l.Machine, ChangedAt: file.at, Bytes: file.Bytes, Counts: Unknown,
		Agents: agents, Path: file.Path,
	}
}

// eachLine calls f with each line of a file, without its newline; whole says that it had one. The line is f's to keep.
func eachLine(ctx context.Context, path string, f func(line []byte, whole bool) error) error {
	in, err := sys.OpenRegular(path)
	if err != nil {
		return fmt.Errorf("read transcript: %w", err)
	}
	defer in.Close()
	for lines := bufio.NewReaderSize(in, 256<<10); ctx.Err() == nil; {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read transcript: %w", err)
		}
		if len(line) > 0 {
			if err := f(bytes.TrimSuffix(line, []byte("\n")), err == nil); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
	return ctx.Err()
}

// maxLine is the longest line that is read, in bytes.
const maxLine = 64 << 20

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

// agents finds the transcripts of sessions' agents on disk. Old versions of Claude Code put them next to the sessions,
// and only their lines say whose they are: each folder is read once.
type agents map[string]map[string][]string // paths, by folder and session

// of returns the transcripts of a session's agents, in whatever folder below the session's, and next to it.
func (a agents) of(file File) (paths []string) {
	//nolint:errcheck // what cannot be listed has no transcripts
	filepath.WalkDir(filepath.Join(strings.TrimSuffix(file.Path, ".jsonl"), "subagents"),
		func(path string, e fs.DirEntry, err error) error {
			if err == nil && isAgent(e) {
				paths = append(paths, path)
			}
			return nil
		})
	folder := filepath.Dir(file.Path)
	if a[folder] == nil {
		a[folder] = map[string][]string{}
		entries, _ := os.ReadDir(folder)
		for _, e := range entries {
			if path := filepath.Join(folder, e.Name()); isAgent(e) {
				session := readSession(path)
				a[folder][session] = append(a[folder][session], path)
			}
		}
	}
	return append(paths, a[folder][file.Session]...)
}

func isAgent(e fs.DirEntry) bool {
	return e.Type().IsRegular() && strings.HasPrefix(e.Name(), "agent-") && strings.HasSuffix(e.Name(), ".jsonl")
}

// readSession returns the session that the first record of a transcript names; "" if that does not.
func readSession(path string) string {
	f, err := sys.OpenRegular(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, headBytes)).ReadBytes('\n') // of a cut one, what is whole is understood
	r := transcript.Parse(bytes.TrimSuffix(line, []byte("\n")))
	return r.SessionID
}

// endBytes are how much of a transcript's end is read for its newest record, the second only if the first has no time.
var endBytes = [...]int64{16 << 10, 1 << 20}

// active returns when the newest record of a transcript was written, by the time in the record, as servers tell it. It
// is never later than the file's change, which it is if no record at the end has a time: copying or restoring a file is
// no activity of its session.
func (f *File) active() time.Time {
	for _, most := range endBytes {
		text, more, err := endOf(f.Path, most)
		if at := newestTime(text); !at.IsZero() {
			if at.After(f.Changed) {
				break
			}
			return at.UTC()
		}
		if err != nil || !more {
			break
		}
	}
	return f.Changed.UTC()
}

// newestTime returns the latest time of the records in the end of a transcript, whose first line may be cut.
func newestTime(text []byte) (newest time.Time) {
	for line := range bytes.Lines(text) {
		if r := transcript.Parse(bytes.TrimSuffix(line, []byte("\n"))); r.Time.After(newest) {
			newest = r.Time
		}
	}
	return newest
}

// activeFile is a transcript on disk, and when its session was active last.
type activeFile struct {
	File
	at time.Time
}

// byActivity returns the transcripts that skip does not take and that were active at since or later, the last active
// first.
func byActivity(disk []File, since time.Time, skip func(*File) bool) (files []activeFile) {
	for i := range disk {
		if disk[i].Changed.Before(since) {
			break // those that follow changed earlier
		}
		if skip(&disk[i]) {
			continue
		}
		if at := disk[i].active(); !at.Before(since) {
			files = append(files, activeFile{disk[i], at})
		}
	}
	slices.SortStableFunc(files, func(a, b activeFile) int {
		return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.Path, b.Path))
	})
	return files
}
