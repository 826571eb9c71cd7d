package sqlstore

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
)

// Filter collects the conditions of a query, joined by AND, and the values for their question marks, in order. Input
// from outside is always a value.
type Filter struct {
	Conditions []string
	Args       []any
}

// Add adds a condition and the values for its question marks.
func (f *Filter) Add(condition string, args ...any) {
	f.Conditions = append(f.Conditions, condition)
	f.Args = append(f.Args, args...)
}

// Where returns the conditions as a WHERE clause; "" without any.
func (f *Filter) Where() string {
	if len(f.Conditions) == 0 {
		return ""
	}
	return "WHERE " + strings.Join(f.Conditions, "\n  AND ")
}

// Scope selects the streams s that a scope sees.
func (f *Filter) Scope(scope server.Scope) {
	switch {
	case scope.Only != 0:
		f.Add(`(s.id = ? OR (s.parent <> '' AND EXISTS (SELECT 1 FROM streams o
      WHERE o.id = ? AND o.parent = '' AND s.parent = o.session_id AND s.owner = o.owner AND s.machine = o.machine)))`,
			scope.Only, scope.Only)
	case scope.All:
	case scope.User == 0:
		f.Add(`1 = 0`)
	default:
		f.Add(`(s.owner = ? OR EXISTS (SELECT 1 FROM shares h
      WHERE h.with_user = ? AND h.owner = s.owner AND h.project_hash = s.project_hash))`, scope.User, scope.User)
	}
}

// Part is what a scope sees of one owner, so that an index by owner finds it in its order.
type Part struct {
	Owner    int64    // 0: everybody
	Projects []string // project_hashes; none: all
}

// Parts returns all parts of what a scope without Only sees, that of its user first.
func Parts(ctx context.Context, l Dialect, scope server.Scope) ([]Part, error) {
	switch {
	case scope.All:
		return []Part{{}}, nil
	case scope.User == 0:
		return nil, nil
	}
	parts := []Part{{Owner: scope.User}}
	err := l.Query(ctx, `SELECT owner, project_hash FROM shares WHERE with_user = ? AND owner <> ?
ORDER BY owner, project_hash`, []any{scope.User, scope.User}, func(row Scanner) error {
		var owner int64
		var project string
		err := row.Scan(&owner, &project)
		if last := &parts[len(parts)-1]; len(parts) > 1 && last.Owner == owner {
			last.Projects = append(last.Projects, project)
		} else {
			parts = append(parts, Part{owner, []string{project}})
		}
		return err
	})
	return parts, Wrap(err, "list shares")
}

// Part selects the rows s that are in a part.
func (f *Filter) Part(p Part) {
	if p.Owner == 0 {
		return
	}
	f.Add(`s.owner = ?`, p.Owner)
	if len(p.Projects) > 0 {
		f.Add(`s.project_hash IN (`+Marks(len(p.Projects))+`)`, Values(p.Projects)...)
	}
}

// Has reports whether an owner's project is in the part.
func (p Part) Has(owner int64, project string) bool {
	return p.Owner == 0 || p.Owner == owner && (len(p.Projects) == 0 || slices.Contains(p.Projects, project))
}

// HasLines selects the streams s with stored lines: a stream may have artifacts first.
const HasLines = `EXISTS (SELECT 1 FROM epochs h WHERE h.owner = s.owner AND h.stream = s.id)`

// artifacts selects the streams s whose documents a scope sees.
func (f *Filter) artifacts(scope server.Scope) {
	switch {
	case scope.All:
	case scope.User == 0:
		f.Add(`1 = 0`)
	default:
		f.Add(`(s.owner = ? OR EXISTS (SELECT 1 FROM shares h
      WHERE h.with_user = ? AND h.owner = s.owner AND h.project_hash = s.project_hash AND h.documents = 1))`,
			scope.User, scope.User)
	}
}

// Own selects the streams s that a scope may change.
func (f *Filter) Own(scope server.Scope) {
	if !scope.All {
		f.Add(`s.owner = ? AND s.owner <> 0`, scope.User)
	}
}

// Drops lets through the streams s whose rewrites a query chooses.
func (f *Filter) Drops(q server.DropQuery) {
	f.Streams(nil, q.User)
	if q.Session != "" {
		f.Session(q.Session, false)
	}
}

// named is the condition that streams s have a session's name, by its key.
const named = `s.session_key = ?`

// Session lets through the streams s of a session, and of its agents.
func (f *Filter) Session(session string, agents bool) {
	if !agents {
		f.Add(named, Key(session))
		return
	}
	f.Add(`(`+named+` OR `+ofParent+`)`, Key(session), session, session)
}

// Parent lets through the streams s of a session's agents.
func (f *Filter) Parent(session string) { f.Add(ofParent, session, session) }

// ofParent is the condition that streams s are agents of a session. Parents may be longer than an index takes: what it
// has is their beginning. With an = at the end SQLite would put the value into the first part, and not see the index.
const ofParent = `(s.parent <> '' AND substr(s.parent, 1, 200) = substr(?, 1, 200) AND s.parent IS NOT DISTINCT FROM ?)`

// user lets through the streams s of a user, given by name.
func (f *Filter) user(name string) {
	if name != "" {
		f.Add(`s.owner = (SELECT id FROM users WHERE name = ?)`, name)
	}
}

// Streams selects the streams s of a machine and a user.
func (f *Filter) Streams(machine *string, user int64) {
	if machine != nil {
		f.Add(`s.machine = ?`, *machine)
	}
	if user != 0 {
		f.Add(`s.owner = ?`, user)
	}
}

// chosen lets through the streams s, with facts f, that a query chooses, but for its text.
func (f *Filter) chosen(q server.SessionQuery) {
	switch {
	case q.Parent != "":
		f.Parent(q.Parent)
	case !q.Agents:
		f.Add(`s.parent = ''`)
	}
	if q.Model != "" {
		f.Add(`instr(f.models, ?) > 0`, "\n"+q.Model+"\n")
	}
	if q.Branch != "" {
		f.Add(`f.branch = ?`, q.Branch)
	}
	if !q.Since.IsZero() {
		f.Add(`s.active >= ?`, q.Since.UnixMicro())
	}
	if !q.Until.IsZero() {
		f.Add(`CASE WHEN f.started > 0 THEN f.started ELSE s.first_received END < ?`, q.Until.UnixMicro())
	}
	if len(q.Names) > 0 {
		keys := make([]any, len(q.Names))
		for i, name := range q.Names {
			keys[i] = Key(name)
		}
		f.Add(`s.session_key IN (`+Marks(len(keys))+`)`, keys...)
	}
	if !q.Before.IsZero() {
		f.Add(`s.active < ?`, q.Before.UnixMicro())
	}
	if q.Failed {
		f.Add(`f.errors > 0`)
	}
	if q.Starred {
		f.Add(`EXISTS (SELECT 1 FROM marks k WHERE k.reader = ? AND k.owner = s.owner AND k.stream = s.id
  AND k.star = 1)`, q.Reader)
	}
	if q.Tag != "" {
		f.Add(`EXISTS (SELECT 1 FROM marks k WHERE k.reader = ? AND k.owner = s.owner AND k.stream = s.id
  AND k.tags LIKE ? ESCAPE '!')`,
			q.Reader, "%\n"+strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(CleanText(q.Tag))+"\n%")
	}
}

// holds is that the stream of the facts whole has all that the copy with the facts part has: it goes on as long. Of two
// that are alike, the one named like its records' session does, then the longer, then the older.
func holds(whole, part string) string {
	return strings.NewReplacer("w.", whole+".", "p.", part+".").Replace(`w.origin <> '' AND p.origin <> ''
  AND p.origin = w.origin AND p.stream <> w.stream AND w.ended >= p.ended
  AND (w.copy, -w.lines, w.stream) < (p.copy, -p.lines, p.stream)`)
}

// HideCopies leaves out the streams s, with facts f, that are copies of a session or an agent which the query lists
// anyway, with all that they have. A name in full is that of a copy, too.
func (f *Filter) HideCopies(part Part, scope server.Scope, q server.SessionQuery) {
	if q.Parent == "" && (scope.Only != 0 || q.Agents) || len(q.Names) > 0 {
		return
	}
	var p Filter
	if q.Parent != "" {
		p.Add(`p.parent = ?`, q.Parent)
	}
	if len(part.Projects) > 0 {
		p.Add(`p.project_hash = s.project_hash`)
	}
	if q.Project != "" {
		condition, args := OfProject("p", scope, q.Project, false)
		p.Add(condition, args...)
	}
	if q.Machine != nil {
		p.Add(`p.machine = ?`, *q.Machine)
	}
	p.Add(holds("o", "f"))
	f.Add(`(s.session_id = ? OR NOT EXISTS (SELECT 1 FROM facts o
  JOIN streams p ON p.owner = o.owner AND p.id = o.stream AND p.owner = s.owner `+p.Where()+`))`,
		append([]any{q.Text}, p.Args...)...)
}

// withCopies joins the facts f of a stream s with those of copies t whose answers count for it too.
func withCopies() string {
	return `JOIN facts t ON t.owner = f.owner AND ` + holds("f", "t") + `
  JOIN streams c ON c.owner = t.owner AND c.id = t.stream AND c.owner = s.owner`
}

// addCopies adds the copies of sessions.
func addCopies(ctx context.Context, l Dialect, list []server.FoundSession) error {
	at, ids := map[int64]*server.FoundSession{}, []any{}
	for i := range list {
		if list[i].Summary.Origin != "" {
			at[list[i].ID], ids = &list[i], append(ids, list[i].ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return l.Query(ctx, `SELECT s.id, c.session_id, c.machine
FROM streams s JOIN facts f ON f.owner = s.owner AND f.stream = s.id `+withCopies()+`
WHERE s.id IN (`+Marks(len(ids))+`) ORDER BY c.id`, ids,
		func(row Scanner) error {
			var id int64
			var c protocol.SessionCopy
			err := row.Scan(&id, &c.SessionID, &c.Machine)
			at[id].Copies = append(at[id].Copies, c)
			return err
		})
}

// Count implements server.SessionFinder.
func (c *Finder) Count(ctx context.Context, scope server.Scope, q server.SessionQuery,
	most int64) (n int64, err error) {
	err = EachPart(ctx, c.reader, scope, func(part Part) error {
		if n >= most {
			return nil
		}
		f, err := c.filter(ctx, part, scope, q)
		if err != nil {
			return err
		}
		f.Add(HasLines)
		some, err := Number(ctx, c.reader, `
SELECT count(*) FROM (SELECT 1 FROM streams s LEFT JOIN facts f ON f.owner = s.owner AND f.stream = s.id `+
			f.Where()+` LIMIT ?) counted`, append(f.Args, most-n)...)
		n += some
		return err
	})
	return n, Wrap(err, "count sessions")
}

// EachPart calls fn with each part of what a scope sees. A scope with Only is one part, which its own condition
// narrows.
func EachPart(ctx context.Context, l Dialect, scope server.Scope, fn func(Part) error) error {
	parts := []Part{{}}
	if scope.Only == 0 {
		var err error
		if parts, err = Parts(ctx, l, scope); err != nil {
			return err
		}
	}
	for _, part := range parts {
		if err := fn(part); err != nil {
			return err
		}
	}
	return nil
}

// Select selects the streams s that a scope sees in a part of it.
func (f *Filter) Select(part Part, scope server.Scope) {
	if scope.Only != 0 {
		f.Scope(scope)
		return
	}
	f.Part(part)
}

// findParts lists one page of what a scope sees: query lists as much as a page of a part, in the page's order.
func findParts(ctx context.Context, l Dialect, scope server.Scope, p server.Page,
	query func(Part) ([]server.FoundSession, error)) (out server.Found, err error) {
	n := 0
	err = EachPart(ctx, l, scope, func(part Part) error {
		list, err := query(part)
		out.List = append(out.List, list...)
		n++
		return err
	})
	if err != nil {
		return server.Found{}, err
	}
	if n > 1 {
		slices.SortFunc(out.List, func(a, b server.FoundSession) int { return inPage(p, &a, &b) })
	}
	if len(out.List) > p.Limit {
		out.List = out.List[:p.Limit]
		if p.Limit > 0 {
			out.Next = PageAfter(p, &out.List[p.Limit-1].Session)
		}
	}
	return out, nil
}

// inPage compares two sessions as a page's order has them.
func inPage(p server.Page, a, b *server.FoundSession) int {
	long := func(x *server.FoundSession) time.Duration { return x.Summary.Ended.Sub(x.Summary.Started) }
	switch {
	case p.Longest:
		return cmp.Or(cmp.Compare(long(b), long(a)), cmp.Compare(b.ID, a.ID))
	case p.Recent:
		return cmp.Or(b.Active.Compare(a.Active), cmp.Compare(b.ID, a.ID))
	}
	return cmp.Compare(a.ID, b.ID)
}
