package provenance

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"
)

// Added is a line that a commit adds to a file.
type Added struct {
	Number int // in the file as committed, from 1
	Sum    Sum
	Plain  bool // as SumOf says
	// Since is when an earlier commit last added the same text to the file; zero if none did. An edit before that is in
	// that commit, not in this one.
	Since time.Time
}

// File is a file that a commit changes.
type File struct {
	Paths     []string // below the repository's folder: as committed, and those that it had before
	Lines     []Added
	Masked    int  // further lines, that hold secrets
	Generated bool // a program writes it, not a person
}

// Commit is what a commit adds. Blank lines are left out: they are like their neighbours.
type Commit struct {
	At    time.Time // when it was made, with what clocks of machines differ
	Bot   bool      // its author is a program other than Claude Code
	Files []File
}

// Moved marks lines as plain whose text the commit also removes from the file: they are no new text.
func (f *File) Moved(removed []string) {
	had := map[Key]int{}
	for _, line := range removed {
		if s, _, ok := SumOf(line); ok {
			had[s.Key()]++
		}
	}
	for i := range f.Lines {
		if k := f.Lines[i].Sum.Key(); had[k] > 0 {
			had[k]--
			f.Lines[i].Plain = true
		}
	}
}

// Candidate is an edit of a file with the same name, and the session that it is of.
type Candidate struct {
	Edit
	Session int  // any number: of equal ones, the edits are of one session
	Copy    bool // the transcript repeats another session's
}

// Match is the edit that a line comes from.
type Match struct {
	Candidate int  // index; -1: not proven
	Exact     bool // in every character; otherwise a formatter changed it
}

// Name returns the name by which the edits of a file are found.
func Name(file string) string { return strings.ToLower(path.Base(slashes(file))) }

// Attribute finds the edit that each line of a file comes from: the last one before the commit that added its text to
// that file. A plain line needs a neighbour from the same edit.
func Attribute(f File, list []Candidate, before time.Time) []Match {
	m := matcher{file: f, list: list, where: map[Key][]place{}, out: make([]Match, len(f.Lines))}
	m.index(before)
	for i := range m.out {
		m.out[i].Candidate = -1
	}
	for i := range f.Lines {
		if !f.Lines[i].Plain {
			m.choose(i)
		}
	}
	for i := range f.Lines {
		m.join(i, i-1)
	}
	for i := len(f.Lines) - 1; i >= 0; i-- {
		m.join(i, i+1)
	}
	return m.out
}

// place is a line of a candidate.
type place struct{ candidate, at int }

type matcher struct {
	file  File
	list  []Candidate
	where map[Key][]place // in the order of time
	out   []Match
}

// index notes which candidates have which of the file's lines.
func (m *matcher) index(before time.Time) {
	wanted := map[Key]bool{}
	for _, l := range m.file.Lines {
		wanted[l.Sum.Key()] = true
	}
	order := make([]int, 0, len(m.list))
	for i, c := range m.list {
		if !c.At.After(before) && SamePath(c.Path, m.file.Paths) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return m.list[a].compare(&m.list[b]) })
	for _, i := range order {
		for at, s := range m.list[i].Sums {
			if k := s.Key(); wanted[k] {
				m.where[k] = append(m.where[k], place{i, at})
			}
		}
	}
}

// compare orders candidates by time; of an edit and its copies, the one that was first comes last.
func (c *Candidate) compare(o *Candidate) int {
	if n := c.At.Compare(o.At); n != 0 {
		return n
	}
	if c.Copy != o.Copy {
		if c.Copy {
			return -1
		}
		return 1
	}
	return cmp.Compare(o.Session, c.Session)
}

// SamePath reports whether the path of an edit ends in one of a file's below its repository.
func SamePath(edited string, paths []string) bool {
	for _, p := range paths {
		if edited == p || len(edited) > len(p) && strings.HasSuffix(edited, p) && edited[len(edited)-len(p)-1] == '/' {
			return true
		}
	}
	return false
}

// choose takes the last edit that has a line.
func (m *matcher) choose(i int) {
	places := m.where[m.file.Lines[i].Sum.Key()]
	if len(places) == 0 {
		return
	}
	if last := places[len(places)-1]; m.list[last.candidate].At.After(m.file.Lines[i].Since) {
		m.take(i, last)
	}
}

func (m *matcher) take(i int, p place) {
	m.out[i] = Match{Candidate: p.candidate, Exact: m.list[p.candidate].Sums[p.at] == m.file.Lines[i].Sum}
}

// join gives a plain line to the edit of its neighbour, if that has it too.
func (m *matcher) join(i, neighbour int) {
	if m.out[i].Candidate >= 0 || neighbour < 0 || neighbour >= len(m.out) || m.out[neighbour].Candidate < 0 {
		return
	}
	for _, p := range m.where[m.file.Lines[i].Sum.Key()] {
		if p.candidate == m.out[neighbour].Candidate {
			m.take(i, p)
		}
	}
}
