package store

import "strings"

// rootsOf is a session's name with those that keep it from being stored when they were forgotten: a second file
// of one session is "<session>~2", an agent's transcript "<session>/agent-…".
func rootsOf(session string) []string {
	names := []string{session}
	add := func(name string, ok bool) {
		if ok && name != "" && name != names[len(names)-1] {
			names = append(names, name)
		}
	}
	add(cutCopy(session))
	parent, _, agent := strings.Cut(session, "/")
	add(parent, agent)
	if agent {
		add(cutCopy(parent))
	}
	return names
}

// cutCopy takes the number off the name of a session's second file.
func cutCopy(session string) (string, bool) {
	i := strings.LastIndexByte(session, '~')
	if i < 0 || i+1 == len(session) || strings.Trim(session[i+1:], "0123456789") != "" {
		return session, false
	}
	return session[:i], true
}
