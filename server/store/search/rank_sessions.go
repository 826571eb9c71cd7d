package search

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// info is what a search knows of a stream that it may show.
type info struct {
	stream
	id, active, lines        int64
	machine, session, parent string
	project, repository      string
	purged                   int64 // docs of lower rounds must not remain
}

// better reports whether x is shown of two copies that are alike.
func (x *info) better(o *info) bool {
	return cmp.Or(cmp.Compare(x.copy, o.copy), cmp.Compare(o.lines, x.lines), cmp.Compare(x.id, o.id)) < 0
}

// runs is how long after its last line a session counts as running.
const runs = 30 * time.Minute

// chooseOwners finds whose segments are read.
func (r *ranking) chooseOwners(ctx context.Context) (err error) {
	var f sqlstore.Filter
	switch names := len(r.ask.Query.Only["user"]); {
	case r.scope.All && names == 0:
		return nil
	case r.scope.Only != 0:
		f.Scope(r.scope)
		r.owners, err = sqlstore.List(ctx, r.d, `SELECT DISTINCT s.owner FROM streams s `+f.Where(), f.Args, scanID)
	case !r.scope.All:
		f.Add(`(s.owner = ? OR s.owner IN (SELECT h.owner FROM shares h WHERE h.with_user = ?))`, r.scope.User, r.scope.User)
		fallthrough
	default:
		r.filterUsers(&f)
		r.owners, err = sqlstore.List(ctx, r.d, `SELECT s.owner FROM (SELECT u.id AS owner FROM users u) s `+f.Where(),
			f.Args,
			scanID)
	}
	r.owners = append(r.owners, nobody)
	return err
}

// nobody has no segments.
const nobody = -1

// chooseStreams finds the streams of the sessions that the query chooses, and whose segments they are in: agents' only
// with their session. Without a choice, all that an owner has is seen, and it finds none.
func (r *ranking) chooseStreams(ctx context.Context) error {
	o := r.ask.Query.Only
	chosen := len(o["project"])+len(o["machine"])+len(o["session"]) > 0 || r.aboutSessions()
	others := func(owner int64) bool { return owner != nobody && owner != r.scope.User }
	if !chosen && r.scope.Only == 0 && (r.scope.All || !slices.ContainsFunc(r.owners, others)) {
		return nil
	}
	f := r.filter()
	if r.owners != nil && len(r.owners) <= maxValues { // else SQLite reads what everybody has
		f.Add(`s.owner IN (`+sqlstore.Marks(len(r.owners))+`)`, sqlstore.Values(r.owners)...)
	}
	var list []*info
	mains := map[groupKey]bool{}
	err := r.eachStream(ctx, f, func(x *info) {
		list = append(list, x)
		mains[x.key()] = mains[x.key()] || x.parent == ""
	})
	r.only = map[int64]bool{}
	owners := map[int64]bool{nobody: true}
	for _, x := range list {
		if mains[x.key()] || !r.aboutSessions() {
			r.only[x.id], owners[x.owner] = true, true
		}
	}
	if r.owners = slices.Collect(maps.Keys(owners)); len(r.owners) > maxValues {
		r.owners = nil
	}
	return err
}

// eachStream calls yield with the streams s, with facts m, that a filter lets through: with whose they are.
func (r *ranking) eachStream(ctx context.Context, f sqlstore.Filter, yield func(*info)) error {
	return r.d.Query(ctx, `SELECT s.id, s.owner, s.machine, s.session_id, s.parent FROM streams s
LEFT JOIN facts m ON m.owner = s.owner AND m.stream = s.id `+f.Where(), f.Args, func(row sqlstore.Scanner) error {
		x := &info{}
		err := row.Scan(&x.id, &x.owner, &x.machine, &x.session, &x.parent)
		if err == nil {
			yield(x)
		}
		return err
	})
}

func (r *ranking) filterUsers(f *sqlstore.Filter) {
	var one []string
	var args []any
	for _, name := range r.ask.Query.Only["user"] {
		if name == "me" || name == "@me" {
			one, args = append(one, `s.owner = ?`), append(args, r.ask.Reader)
			continue
		}
		one, args = append(one, `s.owner IN (SELECT u.id FROM users u WHERE u.name = ?)`), append(args, name)
	}
	if len(one) > 0 {
		f.Add(`(`+strings.Join(one, ` OR `)+`)`, args...)
	}
}

// filter lets through the streams s, with facts m, that the scope sees and the query chooses. What is said of a session
// is not asked of its agents' streams.
func (r *ranking) filter() sqlstore.Filter {
	var f sqlstore.Filter
	f.Scope(r.scope)
	r.filterUsers(&f)
	each := func(name string, condition func(v string) (string, []any)) {
		var one []string
		var list []any
		for _, v := range r.ask.Query.Only[name] {
			is, args := condition(sqlstore.CleanText(v))
			one, list = append(one, is), append(list, args...)
		}
		if len(one) > 0 {
			f.Add(`(`+strings.Join(one, ` OR `)+`)`, list...)
		}
	}
	some := func(name, condition string, args func(v string) []any) {
		each(name, func(v string) (string, []any) { return condition, args(v) })
	}
	each("project", func(v string) (string, []any) { return sqlstore.OfProject("s", r.scope, v, true) })
	twice := func(v string) []any { return []any{v, strings.ToLower(v)} }
	some("machine", `s.machine = ? OR lower(s.host) = ?`, twice)
	some("session", `s.session_id = ? OR s.parent = ? OR s.session_id LIKE ? ESCAPE '\' OR s.parent LIKE ? ESCAPE '\'`,
		func(v string) []any {
			like := strings.TrimPrefix(sqlstore.LikeContains(v), "%")
			return []any{v, v, like, like}
		})
	some("branch", `s.parent <> '' OR m.branch = ?`, func(v string) []any { return []any{v} })
	some("model", `s.parent <> '' OR lower(m.models) LIKE ? ESCAPE '\'`,
		func(v string) []any { return []any{sqlstore.LikeContains(strings.ToLower(v))} })
	r.filterStates(&f)
	return f
}

func (r *ranking) filterStates(f *sqlstore.Filter) {
	for _, state := range r.ask.Query.Only["is"] {
		switch state {
		case "error":
			f.Add(`(s.parent <> '' OR m.errors > 0)`)
		case "starred":
			f.Add(`(s.parent <> '' OR EXISTS (SELECT 1 FROM marks k
  WHERE k.reader = ? AND k.owner = s.owner AND k.stream = s.id AND k.star = 1))`, r.ask.Reader)
		case "lost":
			f.Add(`(s.parent <> '' OR EXISTS (SELECT 1 FROM drops d
  WHERE d.owner = s.owner AND d.stream = s.id AND d.lines > 0))`)
		case "running":
			f.Add(`(s.parent <> '' OR s.active > ?)`, sqlstore.Micros(time.Now().Add(-runs)))
		}
	}
}

// aboutSessions reports whether the query asks something of sessions that is not asked of agents' streams.
func (r *ranking) aboutSessions() bool {
	o := r.ask.Query.Only
	return len(o["branch"])+len(o["model"])+len(o["is"]) > 0
}

var selectInfos = `SELECT s.id, s.owner, s.machine, s.session_id, s.parent, s.project,
  ` + sqlstore.OneProject("s") + `, s.active, ` + derived + `,
  coalesce(m.origin, ''), coalesce(m.copy, 0), coalesce(m.lines, 0),
  coalesce((SELECT g.round FROM gram_purges g WHERE g.owner = s.owner AND g.stream = s.id), 0)
FROM streams s LEFT JOIN folds p ON p.owner = s.owner AND p.stream = s.id
LEFT JOIN facts m ON m.owner = s.owner AND m.stream = s.id `

func scanInfo(row sqlstore.Scanner) (x *info, err error) {
	x = &info{}
	return x, row.Scan(&x.id, &x.owner, &x.machine, &x.session, &x.parent, &x.project, &x.repository, &x.active, &x.round,
		&x.at.Epoch, &x.at.Generation, &x.at.Line, &x.origin, &x.copy, &x.lines, &x.purged)
}

// load loads streams that are not loaded yet. Those that the scope does not see stay unknown.
func (r *ranking) load(ctx context.Context, ids []int64) error {
	slices.Sort(ids)
	ids = slices.DeleteFunc(slices.Compact(ids), func(id int64) bool { return r.infos[id] != nil })
	for some := range slices.Chunk(ids, maxValues) {
		f := r.filter()
		f.Add(`s.id IN (`+sqlstore.Marks(len(some))+`)`, sqlstore.Values(some)...)
		list, err := sqlstore.List(ctx, r.d, selectInfos+f.Where(), f.Args, scanInfo)
		if err != nil {
			return err
		}
		if err := r.loadEpochs(ctx, list); err != nil {
			return err
		}
	}
	return nil
}

// loadEpochs keeps streams, with their epochs.
func (r *ranking) loadEpochs(ctx context.Context, list []*info) error {
	byOwner := map[int64][]int64{}
	for _, x := range list {
		r.infos[x.id] = x
		byOwner[x.owner] = append(byOwner[x.owner], x.id)
	}
	for owner, ids := range byOwner {
		err := r.d.Query(ctx, selectEpochs+` e.owner = ? AND e.stream IN (`+sqlstore.Marks(len(ids))+`)`,
			append([]any{owner}, sqlstore.Values(ids)...), func(row sqlstore.Scanner) error {
				of, e, g, err := scanEpoch(row)
				if err == nil {
					r.infos[of].addEpoch(e, g)
				}
				return err
			})
		if err != nil {
			return err
		}
	}
	for _, x := range list {
		if x.sortEpochs(); len(x.epochs) == 0 {
			delete(r.infos, x.id)
		}
	}
	return nil
}

func (x *info) key() groupKey { return groupKey{x.owner, x.machine, cmp.Or(x.parent, x.session), ""} }

// goneKey is the key of a session of which only the history x has prompts; "": that of the session of x.
func (x *info) goneKey(session string) groupKey {
	key := x.key()
	key.gone = session
	return key
}

// groupOf returns the session of a stream, or that which is gone of a history.
func (r *ranking) groupOf(x *info, gone string) *group {
	key := x.goneKey(gone)
	g := r.groups[key]
	if g == nil {
		g = &group{groupKey: key, main: x, have: make([]bool, len(r.clauses))}
		r.groups[key] = g
	}
	if x.parent == "" {
		g.main = x
	}
	return g
}

// findRecent finds all sessions that the query's filters choose.
func (r *ranking) findRecent(ctx context.Context) error {
	if err := r.findTurns(ctx); err != nil { // those that are excluded
		return err
	}
	f := r.filter()
	f.Add(`s.parent = ''`)
	f.Add(sqlstore.HasLines)
	f.Add(`s.active >= ?`, r.since)
	f.Add(`s.active <= ?`, r.upper)
	list, err := sqlstore.List(ctx, r.d, selectInfos+f.Where()+` ORDER BY s.active DESC LIMIT ?`,
		append(f.Args, mostRecent+1), scanInfo)
	if err != nil {
		return err
	}
	if len(list) > mostRecent {
		list, r.more = list[:mostRecent], true
	}
	for _, x := range list {
		if r.infos[x.id] == nil {
			r.infos[x.id] = x
		}
		r.groupOf(x, "").time = x.active
	}
	if err := r.exclude(ctx); err != nil {
		return err
	}
	return r.score(ctx)
}

// mostRecent is how many sessions are found without words.
const mostRecent = 20_000
