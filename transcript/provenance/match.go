package provenance

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Added is a line that a commit adds to a file.
type Added struct {
	Number int  `json:"n"` // in the file as committed, from 1
	Sum    Sum  `json:"sum"`
	Plain  bool `json:"plain,omitempty"` // as SumOf says
	// Since is when an earlier commit last added the same text to the file; zero if none did. An edit before that is in
	// that commit, not in this one.
	Since time.Time `json:"since,omitzero"`
}

// File is a file that a commit changes.
type File struct {
	Paths     []string `json:"paths"` // below the repository's folder: as committed, and those that it had before
	Lines     []Added  `json:"lines"`
	Masked    int      `json:"masked,omitempty"`    // further lines, that hold secrets
	Generated bool     `json:"generated,omitempty"` // a program writes it, not a person
}

// Commit is what a commit adds. Blank lines are left out: they are like their neighbours.
type Commit struct {
	Name  string    `json:"commit"`        // its hash; "" is what is not committed yet
	At    time.Time `json:"at"`            // when it was made: a later edit is not in it
	Bot   bool      `json:"bot,omitempty"` // its author is a program other than Claude Code
	Files []File    `json:"files"`
	// Project is the hash by which sessions in clones of the repository are known; "" when none is.
	Project string `json:"project,omitempty"`
}

// Moved marks lines as plain whose text the commit also removes from the file: they are no new text. removed is the
// text of the file's removed lines by their numbers before; the answer is where each moved line was, by its index.
func (f *File) Moved(removed map[int]string) map[int]int {
	had, was := map[Key][]int{}, map[int]int{}
	for _, n := range slices.Sorted(maps.Keys(removed)) {
		if s, _, ok := SumOf(removed[n]); ok {
			had[s.Key()] = append(had[s.Key()], n)
		}
	}
	for i := range f.Lines {
		if k := f.Lines[i].Sum.Key(); len(had[k]) > 0 {
			was[i], had[k] = had[k][0], had[k][1:]
			f.Lines[i].Plain = true
		}
	}
	return was
}

// Candidate is an edit of a file with the same name, and the session that it is of.
type Candidate struct {
	Edit
	Session int  // any number: of equal ones, the edits are of one session
	Same    bool // the session is known to be of the commit's repository; of others, path and text decide
}

// Match is the edit that a line comes from.
type Match struct {
	Candidate int  // index; -1: not proven
	Exact     bool // in every character; otherwise a formatter changed it
}

// Name returns the name by which the edits of a file are found.
func Name(file string) string { return strings.ToLower(path.Base(slashes(file))) }

// Attribute finds the edit that each line of a file comes from: the last one before the commit that added its text to
// that file. A plain line needs a neighbour from the same session, or all of the file's lines are of one.
func Attribute(f File, list []Candidate, before time.Time) []Match {
	m := matcher{file: f, list: list, wanted: map[Key]bool{}, where: map[Key][]place{}, free: map[Key]*free{},
		out: make([]Match, len(f.Lines))}
	m.index(before)
	for i := range m.out {
		m.out[i].Candidate = -1
	}
	telling, times := false, map[Key]int{}
	for _, l := range f.Lines {
		times[l.Sum.Key()]++
	}
	var alike, all []int // alike: which of several sessions wrote which of them, neighbours tell
	for i, l := range f.Lines {
		all = append(all, i)
		if l.Plain {
			continue
		}
		telling = true
		if times[l.Sum.Key()] > 1 && l.Since.IsZero() && len(m.freeOf(l.Sum.Key()).candidates) > 1 {
			alike = append(alike, i)
			continue
		}
		m.choose(i)
	}
	if !telling {
		m.together()
	}
	m.joinAll(alike)
	for _, i := range alike {
		if m.out[i].Candidate < 0 {
			m.choose(i)
		}
	}
	m.joinAll(all)
	return m.out
}

// place is a line of a candidate.
type place struct{ candidate, at int }

// free are the places of a text that no line is joined to.
type free struct {
	places     map[int][]int // of candidates
	candidates map[int][]int // of sessions, in the order of time
}

// next takes a place of a candidate, or with others set of any edit of its session; at is -1 when there is none.
func (f *free) next(list []Candidate, candidate int, others bool) place {
	session := list[candidate].Session
	all := f.candidates[session]
	if len(all) == 0 {
		return place{candidate, -1}
	}
	left := f.places[candidate]
	for len(left) == 0 && others && len(all) > 0 {
		candidate = all[len(all)-1]
		if left = f.places[candidate]; len(left) == 0 {
			all = all[:len(all)-1]
			f.candidates[session] = all
		}
	}
	if len(left) == 0 {
		return place{candidate, -1}
	}
	f.places[candidate] = left[1:]
	return place{candidate, left[0]}
}

type matcher struct {
	file   File
	list   []Candidate
	wanted map[Key]bool    // what the file's lines are
	where  map[Key][]place // in the order of time
	free   map[Key]*free
	out    []Match
}

// index notes which candidates have which of the file's lines.
func (m *matcher) index(before time.Time) {
	for _, l := range m.file.Lines {
		m.wanted[l.Sum.Key()] = true
	}
	order := make([]int, 0, len(m.list))
	for i, c := range m.list {
		if !c.At.After(before) && m.file.changedBy(&c) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return m.list[a].compare(&m.list[b]) })
	for _, i := range order {
		for at, s := range m.list[i].Sums {
			if k := s.Key(); m.wanted[k] {
				m.where[k] = append(m.where[k], place{i, at})
			}
		}
	}
}

// compare orders candidates by time, those of the same repository last; of an edit and its copies, the one that was
// first comes last.
func (c *Candidate) compare(o *Candidate) int {
	if c.Same != o.Same {
		if o.Same {
			return -1
		}
		return 1
	}
	if n := c.At.Compare(o.At); n != 0 {
		return n
	}
	if c.Copied != o.Copied {
		if c.Copied {
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

// shared are files whose text many repositories have: in which one a session wrote it, text and path do not say.
var shared = regexp.MustCompile(
	`(?i)(^|/)((un)?licen[sc]e|copying|code_of_conduct|\.git(ignore|attributes)|\.editorconfig)([._-][^/]*)?$`)

// changedBy reports whether a candidate is an edit of the file.
func (f *File) changedBy(c *Candidate) bool {
	return SamePath(c.Path, f.Paths) && (c.Same || !shared.MatchString(f.Paths[0]))
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

// together takes plain lines that have no other neighbours: when edits of one session that are wholly in the file added
// each of them, as often.
func (m *matcher) together() {
	found, left := make([]place, len(m.out)), map[Key][]place{}
	for i, l := range slices.Backward(m.file.Lines) {
		k := l.Sum.Key()
		if _, known := left[k]; !known {
			left[k] = slices.DeleteFunc(slices.Clone(m.where[k]), func(p place) bool { return !m.whole(p.candidate) })
		}
		n := len(left[k]) - 1
		if n < 0 {
			return
		}
		found[i], left[k] = left[k][n], left[k][:n]
		edit := &m.list[found[i].candidate]
		if !edit.At.After(l.Since) || edit.Session != m.list[found[len(found)-1].candidate].Session {
			return
		}
	}
	for i, p := range found {
		if len(found) >= leastLines {
			m.take(i, p)
		}
	}
}

// whole reports whether the file has all lines of a candidate.
func (m *matcher) whole(candidate int) bool {
	x := &m.list[candidate]
	return x.Others == 0 && !slices.ContainsFunc(x.Sums, func(s Sum) bool { return !m.wanted[s.Key()] })
}

// maxGap is how many blank lines may be between neighbours.
const maxGap = 2

// maxNear is how many lines on each side of a plain line are looked at.
const maxNear = 1000

// joinAll joins lines, neighbours first.
func (m *matcher) joinAll(lines []int) {
	proven := slices.Clone(m.out)
	for _, far := range []int{1, maxNear} {
		for _, i := range lines {
			m.join(i, proven, far)
		}
	}
}

// join gives a plain line to the session of the nearest proven line around it, up to far lines away, that added it too,
// and no more often than it did.
func (m *matcher) join(i int, proven []Match, far int) {
	if m.out[i].Candidate >= 0 {
		return
	}
	left, others := m.freeOf(m.file.Lines[i].Sum.Key()), m.file.Lines[i].Plain || m.file.Lines[i].Since.IsZero()
	up, down := i, i
	for ; far > 0 && len(left.places) > 0 && (up >= 0 || down < len(proven)); far-- {
		up, down = m.next(up, -1), m.next(down, +1)
		for _, n := range []int{up, down} {
			if n < 0 || n >= len(proven) || proven[n].Candidate < 0 {
				continue
			}
			if p := left.next(m.list, proven[n].Candidate, others); p.at >= 0 {
				m.take(i, p)
				return
			}
		}
	}
}

// freeOf returns the places of a text.
func (m *matcher) freeOf(k Key) *free {
	out := m.free[k]
	if out == nil {
		out = &free{map[int][]int{}, map[int][]int{}}
		for _, p := range m.where[k] {
			if out.places[p.candidate] == nil {
				session := m.list[p.candidate].Session
				out.candidates[session] = append(out.candidates[session], p.candidate)
			}
			out.places[p.candidate] = append(out.places[p.candidate], p.at)
		}
		m.free[k] = out
	}
	return out
}

// next returns the line after i in a direction, len(m.out) or -1 behind the end of what belongs together.
func (m *matcher) next(i, step int) int {
	end := -1
	if step > 0 {
		end = len(m.out)
	}
	n := i + step
	if i < 0 || i >= len(m.out) || n < 0 || n >= len(m.out) {
		return end
	}
	if gap := (m.file.Lines[n].Number - m.file.Lines[i].Number) * step; gap > maxGap+1 {
		return end
	}
	return n
}
