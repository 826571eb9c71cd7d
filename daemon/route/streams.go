package route

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// Stream is the stream of a transcript.
type Stream struct {
	ID   tail.FileID
	Name string
}

// streams are the names of all streams. It is safe for concurrent use.
type streams struct {
	mu  sync.Mutex
	ids map[string]tail.FileID // by name; guarded by mu
}

func (s *streams) add(name string, id tail.FileID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		s.ids = map[string]tail.FileID{}
	}
	s.ids[name] = id
}

func (s *streams) id(name string) (tail.FileID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := s.ids[name]
	return id, ok
}

// Remembered are the transcripts that are remembered; *tail.Tailer is one.
type Remembered interface {
	File(id tail.FileID) (tail.Tracked, bool)
}

// claim gives a file its stream name. Two remembered files never share a name: the second of a kind gets "~2" and so
// on, permanently. The name of one that was forgotten is free.
func (r *Router) claim(file tail.File, parent string) string {
	s := &r.streams
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		s.ids = map[string]tail.FileID{}
	}
	for n := max(file.Copy, 1); ; n++ {
		name := streamName(file, r.machine, parent, n)
		owner, taken := s.ids[name]
		if taken && r.Remembered != nil {
			_, taken = r.Remembered.File(owner)
		}
		if !taken || owner == file.ID {
			s.ids[name] = file.ID
			return name
		}
	}
}

// find returns the stream with a name, or else those whose names begin with it, in order. It ignores prompt histories.
func (s *streams) find(name string) []Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, ok := s.ids[name]; ok {
		return []Stream{{id, name}}
	}
	var found []Stream
	for stream, id := range s.ids {
		if strings.HasPrefix(stream, name) && !strings.HasPrefix(stream, "history-") {
			found = append(found, Stream{id, stream})
		}
	}
	slices.SortFunc(found, func(a, b Stream) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// streamName returns the name of a file's stream when it is the nth file with its name.
func streamName(file tail.File, machine, parent string, n int) string {
	if file.Kind == tail.History {
		return transcript.HistoryName(machine, file.Root)
	}
	return transcript.StreamName(file.Name, parent, n)
}

// target is where the rules send the lines of a file.
type target struct {
	verdict   Verdict   // Take, Later or Excluded
	exclusion Exclusion // with Excluded
	dest      string    // with Take
	policy    project.Policy
}

// target asks the project of a file whether the file may be sent, and where to.
func (r *Router) target(f *state.Routing) target {
	rules := r.rules.Load()
	switch {
	case r.Tombstones.has(f.Stream.SessionID):
		return excluded(Forgotten, "")
	case f.Stream.Extended && (rules.OwnServer == "" || !rules.History):
		return excluded("no server for the prompt history", "")
	case f.Stream.Extended:
		return target{dest: rules.OwnServer}
	}
	cwd := f.Stream.Cwd
	policy, t := r.allowed(cwd)
	if t.verdict == Take && f.ParentCwd != "" && f.ParentCwd != cwd {
		_, t = r.allowed(f.ParentCwd) // an agent may work elsewhere: its session decides too
	}
	if t.verdict != Take {
		return t
	}
	dest, why := project.Destination(policy, rules.OwnServer, rules.TrustedProjects)
	r.advice.set(cwd, why, "trusted_projects names the folders whose own server and project_hash are followed")
	if dest != "" && dest != rules.OwnServer {
		if _, url, err := outbox.NormalizeURL(dest); err == nil {
			dest = project.DestinationKey(url, policy.Dir)
		} else {
			dest = rules.OwnServer
			r.advice.set(cwd, "the server_url of "+policy.Dir+" is not used: "+err.Error(), "correct .codetracker/config.json")
		}
	}
	if dest == "" {
		return target{verdict: Later, policy: policy}
	}
	return target{policy: policy, dest: dest}
}

// allowed asks the project of a working directory whether anything of it may be sent: Take or Excluded.
func (r *Router) allowed(cwd string) (project.Policy, target) {
	policy, err := r.projects.Find(cwd)
	switch {
	case err != nil:
		r.advice.set(cwd, err.Error(), "until that file can be read nothing of the project is sent")
		return policy, excluded(withheldWhy(err), cwd)
	case !policy.Enabled:
		return policy, excluded(policy.Why, cwd)
	}
	return policy, target{}
}

// Destination returns the server of a transcript's lines under the rules in force. It returns "" when they go nowhere;
// why is then the reason if they must stay on this machine.
func (r *Router) Destination(f *state.Routing) (dest, why string) {
	t := r.target(f)
	switch t.verdict {
	case Take:
		return t.dest, ""
	case Excluded:
		return "", t.exclusion.Why
	}
	return "", ""
}

func excluded(why, cwd string) target {
	return target{verdict: Excluded, exclusion: Exclusion{Why: why, Cwd: cwd}}
}

// withheldWhy returns why a project whose opt-out cannot be read is excluded.
func withheldWhy(err error) string { return "held back: " + err.Error() }

// namedByProject reports whether a destination is the server that the project itself names.
func (t *target) namedByProject() bool {
	url, _, own := project.SplitDestination(t.dest)
	return own || t.policy.ServerURL != "" && project.SameServer(t.policy.ServerURL, url)
}

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
