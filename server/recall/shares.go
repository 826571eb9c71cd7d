package recall

import (
	"maps"
	"regexp"
	"slices"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/provenance"
)

var fullHash = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// shares are what sessions wrote of a commit, each compared with it alone: who may read one of them learns nothing of
// the others. They are those of the user who asks, and all for an owner, because a question can name any commit: nobody
// else puts one on a session's page. left is how much more is compared.
func (w *Written) shares(c provenance.Commit, lists [][]provenance.Candidate, left *int) (out []server.CommitShare,
	err error) {
	if c.Bot || !fullHash.MatchString(c.Name) {
		return nil, nil
	}
	places, size := w.mayShare(c, lists), len(c.Files)
	for _, f := range c.Files {
		size += len(f.Lines)
	}
	alone := make([][]provenance.Candidate, len(lists))
	for at := range w.list {
		if len(places[at]) == 0 || *left < size {
			continue
		}
		*left -= size
		clear(alone)
		for _, p := range places[at] {
			alone[p.file] = append(alone[p.file], lists[p.file][p.at])
		}
		d := provenance.Decide(c, alone)
		lines := d.Added
		for _, n := range d.NotProven {
			lines -= n
		}
		if lines == 0 {
			continue
		}
		x := w.list[at]
		stream := x.Stream
		if x.Parent != "" {
			parent, err := w.parent(x)
			if err != nil {
				return nil, err
			}
			if stream = parent.ID; stream == 0 {
				continue // only its agents are stored
			}
		}
		out = append(out, server.CommitShare{Owner: x.Owner, Stream: stream, Commit: c.Name, At: c.At,
			Added: int64(d.Added), Lines: int64(lines)})
	}
	return out, nil
}

// place is a candidate of a file.
type place struct{ file, at int }

// mayShare are the edits of each session that may have a share of a commit: some of them added a line that says
// something, unless none of the commit's does.
func (w *Written) mayShare(c provenance.Commit, lists [][]provenance.Candidate) map[int][]place {
	telling := map[provenance.Key]bool{}
	for _, f := range c.Files {
		for _, l := range f.Lines {
			if !l.Plain {
				telling[l.Sum.Key()] = true
			}
		}
	}
	out, says := map[int][]place{}, map[int]bool{}
	for i, list := range lists {
		for at := range list {
			x := &list[at]
			if x.Copied || len(x.Sums) == 0 || !w.scope.All && w.list[x.Session].Owner != w.scope.User {
				continue
			}
			out[x.Session] = append(out[x.Session], place{i, at})
			says[x.Session] = says[x.Session] || len(telling) == 0 ||
				slices.ContainsFunc(x.Sums, func(s provenance.Sum) bool { return telling[s.Key()] })
		}
	}
	maps.DeleteFunc(out, func(session int, _ []place) bool { return !says[session] })
	return out
}
