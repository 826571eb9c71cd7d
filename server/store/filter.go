package store

import (
	"strings"

	"github.com/ccship/ccship/server"
)

// filter collects the conditions of a query, joined by AND, and the values for their question marks, in order. Input
// from outside is always a value.
type filter struct {
	conditions []string
	args       []any
}

func (f *filter) add(condition string, args ...any) {
	f.conditions = append(f.conditions, condition)
	f.args = append(f.args, args...)
}

// where returns the conditions as a WHERE clause; "" without any.
func (f *filter) where() string {
	if len(f.conditions) == 0 {
		return ""
	}
	return "WHERE " + strings.Join(f.conditions, "\n  AND ")
}

// scope selects the streams s that a scope sees.
func (f *filter) scope(scope server.Scope) {
	switch {
	case scope.All:
	case scope.User == 0:
		f.add(`1 = 0`)
	default:
		f.add(`(s.owner = ? OR EXISTS (SELECT 1 FROM shares h
      WHERE h.with_user = ? AND h.owner = s.owner AND h.project_hash = s.project_hash))`, scope.User, scope.User)
	}
}

// hasLines selects the streams s with stored lines: a stream may have artifacts first.
const hasLines = `EXISTS (SELECT 1 FROM epochs WHERE stream = s.id)`

// artifacts selects the streams s whose documents a scope sees.
func (f *filter) artifacts(scope server.Scope) {
	switch {
	case scope.All:
	case scope.User == 0:
		f.add(`1 = 0`)
	default:
		f.add(`(s.owner = ? OR EXISTS (SELECT 1 FROM shares h
      WHERE h.with_user = ? AND h.owner = s.owner AND h.project_hash = s.project_hash AND h.documents = 1))`,
			scope.User, scope.User)
	}
}

// own selects the streams s that a scope may change.
func (f *filter) own(scope server.Scope) {
	if !scope.All {
		f.add(`s.owner = ? AND s.owner <> 0`, scope.User)
	}
}

// drops lets through the streams s whose rewrites a query chooses.
func (f *filter) drops(l dialect, q server.DropQuery) {
	f.streams("", nil, q.User)
	if q.Session != "" {
		f.add(l.named(q.Session))
	}
}

// user lets through the streams s of a user, given by name.
func (f *filter) user(name string) {
	if name != "" {
		f.add(`s.owner = (SELECT id FROM users WHERE name = ?)`, name)
	}
}

// streams selects the streams s of a project, given by hash or name, a machine and a user.
func (f *filter) streams(project string, machine *string, user int64) {
	if project != "" {
		f.add(`(s.project_hash = ? OR s.project = ?)`, project, project)
	}
	if machine != nil {
		f.add(`s.machine = ?`, *machine)
	}
	if user != 0 {
		f.add(`s.owner = ?`, user)
	}
}
