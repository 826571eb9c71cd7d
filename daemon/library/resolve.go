package library

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/transcript"
)

// minPrefix is the shortest prefix of a session's id that Find accepts.
const minPrefix = 4

// Found is the session that an id or a prefix of it matches.
type Found struct {
	Session string
	Files   []File            // on disk
	Stored  []*remote.Session // on the server, one for each machine, the latest first

	failed error // why the server could not be reached
}

// Find finds the one session whose id is prefix or starts with it. Several are a CodeAmbiguous error that lists them,
// none is a control.CodeNoSession. If the server cannot be reached, Find searches the disk, and returns the server's
// error if that finds nothing.
func (l *Library) Find(ctx context.Context, prefix string) (Found, error) {
	if len(prefix) < minPrefix {
		return Found{}, control.Usage(fmt.Sprintf("%q is too short for a session id", prefix),
			fmt.Sprintf("give at least %d characters of its id", minPrefix))
	}
	all := map[string]*Found{}
	at := func(session string) *Found {
		if all[session] == nil {
			all[session] = &Found{Session: session}
		}
		return all[session]
	}
	for _, f := range Disk(l.Roots) {
		if strings.HasPrefix(f.Session, prefix) {
			found := at(f.Session)
			found.Files = append(found.Files, f)
		}
	}
	var failed error
	if l.Server != nil {
		q := remote.Query{Text: prefix, Recent: true, Agents: strings.Contains(prefix, "/")}
		failed = l.Server.Sessions(ctx, q, 200, func(s *remote.Session) bool {
			if strings.HasPrefix(s.SessionID, prefix) && conversation(s) {
				found := at(s.SessionID)
				found.Stored = append(found.Stored, s)
			}
			return true
		})
	}
	found, err := pick(prefix, all)
	found.failed = failed
	if failed != nil && (err != nil || len(found.Files) == 0) {
		return found, failed
	}
	return found, err
}

func pick(prefix string, all map[string]*Found) (Found, error) {
	if exact := all[prefix]; exact != nil {
		return *exact, nil
	}
	if len(all) == 0 {
		return Found{}, control.NoSession("there is no session "+prefix, "`ccship list` lists them")
	}
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	if name, ok := transcript.Covering(names); ok { // the others are its further files and agents
		return *all[name], nil
	}
	const shown = 8
	more := ""
	if len(names) > shown {
		more = fmt.Sprintf(" and %d more", len(names)-shown)
	}
	return Found{}, control.Ambiguous(fmt.Sprintf("%s matches %d sessions: %s%s", prefix, len(names),
		strings.Join(names[:min(len(names), shown)], ", "), more),
		"give more of the id")
}

// Copy says which of several sessions with one id on a server is meant.
type Copy struct {
	Machine string // its id, the beginning of it, or a host name; "": this one, or the only one that has it
	User    string // whose; "": the only user's who has it
}

// stored chooses a machine's copy: the named machine's, or else this machine's, or else the only one. It chooses none
// if several users have one there.
func (l *Library) stored(ctx context.Context, f Found, which Copy) (*remote.Session, error) {
	if l.Server == nil {
		return nil, NoServer()
	}
	wanted, err := l.machine(ctx, which.Machine)
	if err != nil {
		return nil, err
	}
	var here []*remote.Session
	var only *remote.Session // any of the user's
	var others, users []string
	for _, s := range f.Stored {
		switch {
		case which.User != "" && s.User != which.User:
			continue
		case wanted != nil && s.Machine == *wanted || wanted == nil && s.Machine == l.Machine:
			here, users = append(here, s), append(users, s.User)
		}
		only = s
		others = append(others, fmt.Sprintf("%s (%s)", s.Machine, s.Host))
	}
	switch {
	case len(here) == 1:
		return here[0], nil
	case len(here) > 1:
		return nil, control.Ambiguous(fmt.Sprintf("session %s is of %d users: %s", f.Session, len(users),
			strings.Join(users, ", ")), "choose one with --user")
	case len(f.Stored) > 0 && len(others) == 0:
		return nil, control.NoSession("the server does not have session "+f.Session+" of "+which.User,
			"`ccship list` lists sessions")
	case len(f.Stored) == 0 && f.failed != nil:
		return nil, f.failed
	case len(f.Stored) == 0:
		return nil, control.NoSession("the server does not have session "+f.Session,
			"`ccship sync` delivers what is on disk")
	case wanted != nil:
		return nil, control.NoSession("the server does not have session "+f.Session+" from that machine",
			"it is from "+strings.Join(others, ", "))
	case len(others) == 1:
		return only, nil
	}
	return nil, control.Ambiguous(fmt.Sprintf("session %s is from %d machines: %s", f.Session, len(others),
		strings.Join(others, ", ")),
		"choose one with --machine")
}

// mayContinue refuses another user's session that nobody asked for by its user: what it says becomes Claude's context
// as if it had been said here.
func (l *Library) mayContinue(ctx context.Context, s *remote.Session, named string) error {
	if named != "" {
		return nil
	}
	_, err := l.Server.Session(ctx, remote.Ref{Session: s.SessionID, User: remote.Me})
	if e, ok := errors.AsType[*control.Error](err); ok && e.Code == control.CodeNoSession {
		return control.Usage(fmt.Sprintf("session %s is %s's, not yours: Claude would take what it says for its own context",
			s.SessionID, s.User), "read it first; then add --user "+s.User)
	}
	return err
}
