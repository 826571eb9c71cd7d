package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/tail"
)

// namedSession is a transcript that somebody named.
type namedSession struct {
	id   tail.FileID
	name string // of its stream
}

// mostNamed is how many candidates an error lists.
const mostNamed = 5

// sessionNamed finds the transcript of a stream's name, or of a beginning that only one has: of several, the one main
// transcript among them. The error is for people.
func (d *Daemon) sessionNamed(_ context.Context, name string) (namedSession, error) {
	if name == "" {
		return namedSession{}, control.Usage("name a session", "")
	}
	found := d.desk.find(name)
	if len(found) > 1 {
		mains := slices.DeleteFunc(slices.Clone(found), func(s namedSession) bool { return strings.Contains(s.name, "/") })
		if len(mains) > 0 {
			found = mains
		}
	}
	switch {
	case len(found) == 0:
		return namedSession{}, d.unknownSession(name)
	case len(found) > 1:
		return namedSession{}, ambiguous(name, found)
	}
	s := found[0]
	if why, excluded := d.excludedFiles()[s.id]; excluded {
		return namedSession{}, control.NoSession("session "+s.name+" is not read: "+why,
			"`ccship exclude list` says what is left out")
	}
	return s, nil
}

func (d *Daemon) unknownSession(name string) error {
	hint := "`ccship sessions list` names them"
	if !d.desk.anyServer() {
		hint = "nothing is read until server_url is set: `ccship setup`, or try `ccship up`"
	}
	return control.NoSession("there is no session "+name, hint)
}

func ambiguous(name string, found []namedSession) error {
	var names []string
	for _, s := range found[:min(len(found), mostNamed)] {
		names = append(names, s.name)
	}
	if more := len(found) - mostNamed; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return control.Ambiguous(fmt.Sprintf("%d sessions begin with %s", len(found), name),
		"one of "+strings.Join(names, ", "))
}

// find answers the streams of a name, or else those whose names begin with it, in order; none of the prompt histories.
func (d *desk) find(name string) []namedSession {
	d.mu.Lock()
	defer d.mu.Unlock()
	if id, ok := d.streams[name]; ok {
		return []namedSession{{id, name}}
	}
	var found []namedSession
	for stream, id := range d.streams {
		if strings.HasPrefix(stream, name) && !strings.HasPrefix(stream, "history-") {
			found = append(found, namedSession{id, stream})
		}
	}
	slices.SortFunc(found, func(a, b namedSession) int { return strings.Compare(a.name, b.name) })
	return found
}
