package route

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// maxCandidates is how many candidates an error lists.
const maxCandidates = 5

// Files are the transcripts on disk; *tail.Tailer is one.
type Files interface {
	// Here returns the given files that are on disk.
	Here(ids []tail.FileID) []tail.FileID
}

// Lookup finds a stream by its name or a prefix of it. If several streams share the prefix, it returns the only main
// transcript among them, or the only session whose further files the others are. The error is for people.
func (r *Router) Lookup(name string, files Files) (Stream, error) {
	if name == "" {
		return Stream{}, control.Usage("name a session", "")
	}
	found := r.streams.find(name)
	if len(found) > 1 {
		mains := slices.DeleteFunc(slices.Clone(found), func(s Stream) bool { return strings.Contains(s.Name, "/") })
		if len(mains) > 0 {
			found = mains
		}
		found = covering(found)
	}
	switch {
	case len(found) == 0:
		return Stream{}, r.UnknownSession(name)
	case len(found) > 1:
		return Stream{}, ambiguous(name, found)
	}
	s := found[0]
	if e, excluded := r.Excluded()[s.ID]; excluded && len(files.Here([]tail.FileID{s.ID})) > 0 {
		return Stream{}, control.NoSession("session "+s.Name+" is not read: "+e.Why,
			"`ccship exclude` says what is left out; a forgotten session is never sent again")
	}
	return s, nil
}

// covering returns the one stream that the others belong to, or all of them if there is none.
func covering(found []Stream) []Stream {
	names := make([]string, len(found))
	for i, s := range found {
		names[i] = s.Name
	}
	if name, ok := transcript.Covering(names); ok {
		at := slices.Index(names, name)
		return found[at : at+1]
	}
	return found
}

// UnknownSession is the error for a session name that matches nothing.
func (r *Router) UnknownSession(name string) error {
	hint := "`ccship list` lists them"
	if !r.AnyServer() {
		hint = "nothing is read until server_url is set: `ccship setup`, or try `ccship up`"
	}
	return control.NoSession("there is no session "+name, hint)
}

func ambiguous(name string, found []Stream) error {
	var names []string
	for _, s := range found[:min(len(found), maxCandidates)] {
		names = append(names, s.Name)
	}
	if more := len(found) - maxCandidates; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return control.Ambiguous(fmt.Sprintf("%d sessions begin with %s", len(found), name),
		"one of "+strings.Join(names, ", "))
}
