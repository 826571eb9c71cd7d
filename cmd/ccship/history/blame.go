package history

import (
	"context"
	"strconv"
	"strings"
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
