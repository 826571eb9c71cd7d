// Package history asks git what a commit adds, who last changed a line, and which commits a name stands for. It runs
// the program git, changes nothing but notes when it is asked to, and fetches nothing.
package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/transcript/provenance"
)

// Blamed is where a line of a file comes from.
type Blamed struct {
	Number int    // now, from 1
	Commit string // "" when it is not committed yet
	Path   string // in that commit
	Line   int    // in that commit
	Text   string
	Steps  int // commits that only moved or formatted it and were passed
}

// maxSteps is how many commits that did not write a line are passed on the way to the one that did.
const maxSteps = 8

// Blame finds the commits that lines of a file come from, skipping changes of white space and moves within the file. at
// is a commit, or "" for the work tree; to is 0 for the last line.
func (r *Repo) Blame(ctx context.Context, at, file string, from, to int) (out []Blamed, err error) {
	lines := strconv.Itoa(from) + ","
	if to > 0 {
		lines += strconv.Itoa(to)
	}
	args := []string{"blame", "--line-porcelain", "-w", "-M", "-L", lines}
	if at != "" {
		args = append(args, at)
	}
	text, err := r.git(ctx, append(args, "--", file)...)
	if err != nil {
		return nil, err
	}
	var b Blamed
	for _, l := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(l, "\t"):
			b.Text = strings.TrimRight(l[1:], "\r")
			out = append(out, b)
			b = Blamed{}
		case b.Commit == "" && b.Line == 0:
			fields := strings.Fields(l)
			if len(fields) < 3 {
				continue
			}
			b.Commit, b.Line, b.Number = fields[0], number(fields[1], 0), number(fields[2], 0)
			if strings.Trim(b.Commit, "0") == "" {
				b.Commit = ""
			}
		case strings.HasPrefix(l, "filename "):
			b.Path = pathIn("b/"+strings.TrimPrefix(l, "filename "), "b/")
		}
	}
	return out, nil
}

// Passed returns where a line was before a commit that only moved it; ok is false when that commit wrote it.
func (r *Repo) Passed(ctx context.Context, f *Facts, b Blamed) (before Blamed, ok bool, err error) {
	i, at := f.Find(b)
	if i < 0 || f.Parent == "" || b.Steps >= maxSteps {
		return b, false, nil
	}
	was, moved := f.Was[i][at]
	if !moved {
		return b, false, nil
	}
	paths := f.Files[i].Paths
	list, err := r.Blame(ctx, f.Parent, paths[len(paths)-1], was, was)
	if err != nil || len(list) != 1 {
		return b, false, err
	}
	before = list[0]
	before.Number, before.Text, before.Steps = b.Number, b.Text, b.Steps+1
	return before, true, nil
}

// Find returns the place of a line in the facts of its commit; -1 when it is not among what they compare.
func (f *Facts) Find(b Blamed) (file, index int) {
	for i := range f.Files {
		if f.Files[i].Paths[0] != b.Path {
			continue
		}
		for at, l := range f.Files[i].Lines {
			if l.Number == b.Line {
				return i, at
			}
		}
	}
	return -1, -1
}

const (
	// maxEarlier is how many earlier commits of its files are looked at to tell new text from old.
	maxEarlier = 300
	// fraction is what a commit's time lacks: git keeps whole seconds.
	fraction = time.Second
)

// Facts are what a commit adds. Was says of lines that are no new text where they were before, by file and index.
type Facts struct {
	provenance.Commit
	Parent string // "" of a first commit
	Was    []map[int]int
}

// Facts reads what a commit adds; of "" what is not committed yet.
func (r *Repo) Facts(ctx context.Context, commit string) (f Facts, err error) {
	if commit == "" {
		return r.uncommitted(ctx)
	}
	head, err := r.git(ctx, "log", "-1", "--format=%H%x00%P%x00%ct%x00%an%x00%ae", commit, "--")
	if err != nil {
		return f, err
	}
	fields := strings.Split(strings.TrimRight(head, "\r\n"), "\x00")
	if len(fields) != 5 {
		return f, fmt.Errorf("read commit %s: git printed something else", commit)
	}
	seconds, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return f, fmt.Errorf("read time of commit %s: %w", commit, err)
	}
	f.Name, f.At, f.Bot = fields[0], time.Unix(seconds, 0).Add(fraction).UTC(), isBot(fields[3], fields[4])
	parents := strings.Fields(fields[1])
	if len(parents) > 0 {
		f.Parent = parents[0]
	}
	text, err := r.git(ctx, slices.Concat([]string{"show", "--format="}, patch(), []string{f.Name, "--"})...)
	if err != nil {
		return f, err
	}
	r.read(&f, text)
	return f, r.earlier(ctx, &f, parents)
}

func (r *Repo) uncommitted(ctx context.Context) (f Facts, err error) {
	f.At, f.Parent = time.Now().UTC(), "HEAD"
	text, err := r.git(ctx, slices.Concat([]string{"diff"}, patch(), []string{"HEAD", "--"})...)
	if err != nil {
		return f, err
	}
	r.read(&f, text)
	return f, r.earlier(ctx, &f, []string{"HEAD"})
}

// isBot reports whether a program other than Claude Code made a commit.
func isBot(name, email string) bool {
	text := strings.ToLower(name + " " + email)
	return strings.Contains(text, "[bot]") && !strings.Contains(text, "claude")
}

// read adds the files of a patch.
func (r *Repo) read(f *Facts, text string) {
	for _, c := range changes(text) {
		if c.path == "" || len(c.added) == 0 {
			continue
		}
		file := provenance.File{Paths: []string{c.path}, Lines: []provenance.Added{}, Generated: generated(c)}
		if c.old != "" && c.old != c.path {
			file.Paths = append(file.Paths, c.old)
		}
		masked := r.masked(c.added)
		for i, l := range c.added {
			s, plain, ok := provenance.SumOf(l.text)
			switch {
			case !ok:
			case masked[i]:
				file.Masked++
			default:
				file.Lines = append(file.Lines, provenance.Added{Number: l.number, Sum: s, Plain: plain})
			}
		}
		removed := map[int]string{}
		for _, l := range c.removed {
			removed[l.number] = l.text
		}
		f.Was = append(f.Was, file.Moved(removed))
		f.Files = append(f.Files, file)
	}
}

// masked tells which lines hold a secret.
func (r *Repo) masked(lines []line) map[int]bool {
	out := map[int]bool{}
	if r.Mask == nil {
		return out
	}
	text := make([]string, len(lines))
	for i, l := range lines {
		text[i] = l.text
	}
	after := strings.Split(r.Mask(strings.Join(text, "\n")), "\n")
	for i := range lines {
		if len(after) != len(text) || after[i] != text[i] {
			out[i] = true
		}
	}
	return out
}

// earlier notes when an earlier commit last added the text of a line to the same file.
func (r *Repo) earlier(ctx context.Context, f *Facts, parents []string) error {
	if len(parents) == 0 || len(f.Files) == 0 {
		return nil
	}
	args := slices.Concat([]string{"log", "--format=%x01%ct", "-n", strconv.Itoa(maxEarlier)}, patch(), parents,
		[]string{"--"})
	for _, file := range f.Files {
		args = append(args, file.Paths...)
	}
	text, err := r.git(ctx, args...)
	if err != nil {
		if f.Name != "" && r.lacks(ctx, f.Name) {
			return nil // a shallow clone has no more
		}
		return err
	}
	last := map[string]map[provenance.Key]time.Time{}
	for _, part := range strings.Split(text, "\x01")[1:] {
		head, body, _ := strings.Cut(part, "\n")
		seconds, err := strconv.ParseInt(head, 10, 64)
		if err != nil {
			continue
		}
		for _, c := range changes(body) {
			note(last, c, time.Unix(seconds, 0).UTC())
		}
	}
	for i := range f.Files {
		for _, path := range f.Files[i].Paths {
			for j := range f.Files[i].Lines {
				l := &f.Files[i].Lines[j]
				if at := last[path][l.Sum.Key()]; at.After(l.Since) {
					l.Since = at
				}
			}
		}
	}
	return nil
}

func note(last map[string]map[provenance.Key]time.Time, c change, at time.Time) {
	if last[c.path] == nil {
		last[c.path] = map[provenance.Key]time.Time{}
	}
	for _, l := range c.added {
		if s, _, ok := provenance.SumOf(l.text); ok && at.After(last[c.path][s.Key()]) {
			last[c.path][s.Key()] = at
		}
	}
}

// lacks reports whether the clone is shallow and ends at a commit: its parents are not there.
func (r *Repo) lacks(ctx context.Context, commit string) bool {
	shallow, err := r.git(ctx, "rev-parse", "--is-shallow-repository")
	if err != nil || strings.TrimSpace(shallow) != "true" {
		return false
	}
	raw, err := r.git(ctx, "cat-file", "commit", commit)
	if err != nil {
		return false
	}
	shown, err := r.git(ctx, "log", "-1", "--format=%P", commit, "--")
	return err == nil && strings.HasPrefix(rest(raw), "parent ") && strings.TrimSpace(shown) == ""
}

// rest returns a commit object behind its first line, which names its tree.
func rest(raw string) string {
	_, after, _ := strings.Cut(raw, "\n")
	return after
}

// Whole refuses a commit at which a shallow clone ends: it seems to add all its files.
func (r *Repo) Whole(ctx context.Context, commit string) error {
	if !r.lacks(ctx, commit) {
		return nil
	}
	return control.Usage("the clone is shallow and ends at "+commit[:min(len(commit), 12)],
		"`git fetch --unshallow` brings the rest")
}

// Note attaches a text to a commit, in place of the one that it attached before. Nothing else here writes to a
// repository. `git log --notes=ccship` shows it.
func (r *Repo) Note(ctx context.Context, commit, text string) error {
	if _, err := r.git(ctx, "notes", "--ref=ccship", "add", "-f", "-m", text, commit); err != nil {
		return control.Usage(err.Error(), "see whether `git notes --ref=ccship add` works here")
	}
	return nil
}

// Repo is a work tree.
type Repo struct {
	Top string // its folder
	// Mask returns a text with its secrets replaced, line by line as long as before; nil: nothing is secret.
	Mask func(text string) string
}

// Open finds the work tree that a folder is in.
func Open(ctx context.Context, dir string) (*Repo, error) {
	top, err := (&Repo{Top: dir}).git(ctx, "rev-parse", "--show-toplevel")
	if errors.Is(err, exec.ErrNotFound) {
		return nil, control.NewError("no_git", "git is not installed", "install git: `ccship why` asks it about history")
	}
	if err != nil {
		return nil, control.Usage(dir+" is in no git repository", "run it in one")
	}
	return &Repo{Top: strings.TrimRight(top, "\r\n")}, nil
}

// git runs git and returns what it prints. No setting of the user's changes the form of that.
func (r *Repo) git(ctx context.Context, args ...string) (string, error) {
	all := append([]string{"-C", r.Top, "-c", "core.quotePath=false", "-c", "log.showSignature=false", "--no-pager",
		"--literal-pathspecs"}, args...)
	cmd := exec.CommandContext(ctx, "git", all...)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		text, _, _ := strings.Cut(strings.TrimSpace(problem.String()), "\n")
		return "", fmt.Errorf("git %s: %s: %w", args[0], text, err)
	}
	return string(out), nil
}

// patch returns the arguments that make git print changes in the one form that is read here.
func patch() []string {
	return []string{"-p", "-U0", "-M", "--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/",
		"--dst-prefix=b/",
		"--diff-algorithm=myers", "--submodule=short"}
}
