package sqlstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// Key stands for a name of any length in an index. It is of the name as it is stored and shown, so that one can ask for
// what one has read.
func Key(name string) []byte {
	sum := sha256.Sum256([]byte(CleanText(name)))
	return sum[:]
}

// Clean makes a head's names fit for a text column, which holds neither NUL nor what is not UTF-8.
func Clean(h server.Head) server.Head {
	for _, s := range []*string{
		&h.SessionID, &h.ProjectHash, &h.Machine, &h.Host, &h.Epoch, &h.Path, &h.Cwd, &h.Project, &h.Parent,
	} {
		*s = CleanText(*s)
	}
	return h
}

// CleanText puts U+FFFD in place of what a text column can't hold.
func CleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// CleanValues makes the texts among a statement's values fit as CleanText does: what a caller asks for is compared with
// what is stored. It leaves args as they are, and copies them only if some do not fit.
func CleanValues(args []any) []any {
	fit := args
	set := func(i int, value any) {
		if &fit[0] == &args[0] {
			fit = slices.Clone(args)
		}
		fit[i] = value
	}
	for i, arg := range args {
		switch x := arg.(type) {
		case string:
			if !isClean(x) {
				set(i, CleanText(x))
			}
		case []string:
			if n := slices.IndexFunc(x, func(s string) bool { return !isClean(s) }); n >= 0 {
				list := slices.Clone(x)
				for k := n; k < len(list); k++ {
					list[k] = CleanText(list[k])
				}
				set(i, list)
			}
		}
	}
	return fit
}

// isClean reports whether a text column holds a text as it is.
func isClean(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// TombstoneKeys returns the keys of what keeps a batch from being stored when it was forgotten.
func TombstoneKeys(h *server.Head) (keys [][]byte) {
	names := transcript.ForgetNames(h.SessionID)
	if h.Parent != "" {
		names = append(names, transcript.ForgetNames(h.Parent)...)
	}
	for _, name := range names {
		keys = append(keys, Key(name))
	}
	return keys
}

const (
	// shortName is how many characters of an id a short name has at least, and leastPrefix how many one may be given as.
	shortName   = 8
	leastPrefix = 4
	// maxAlike is how many ids with one beginning are compared.
	maxAlike = 200
)

// span returns the range of texts that begin with a prefix: from it to before end. ok is false for prefixes that no id
// has.
func span(prefix string) (end string, ok bool) {
	last := len(prefix) - 1
	if last < 0 || strings.ContainsFunc(prefix, func(r rune) bool { return r <= ' ' || r >= '~' }) {
		return "", false
	}
	return prefix[:last] + string(prefix[last]+1), true
}

// whole completes the id of a ref that is the beginning of one: what a scope does not see does not count. An agent's is
// that of its session, and its own name. When several ids begin so, the error is an *server.AmbiguousError.
func (l lookup) whole(ctx context.Context, ref server.Ref) (server.Ref, error) {
	prefix, agent, isAgent := strings.Cut(ref.SessionID, "/")
	end, ok := span(prefix)
	if !ok || len(prefix) < leastPrefix {
		return ref, server.ErrNotFound
	}
	var f Filter
	l.limit(&f, l.scope)
	f.Add(`s.parent = '' AND s.session_id >= ? AND s.session_id < ?`, prefix, end)
	f.Streams(ref.Machine, ref.Owner)
	ids, err := List(ctx, l, `SELECT s.session_id FROM streams s `+f.Where()+`
GROUP BY s.session_id ORDER BY max(s.last_received) DESC LIMIT ?`, append(f.Args, server.MaxChoices), scanName)
	switch {
	case err != nil:
		return ref, fmt.Errorf("find session: %w", err)
	case len(ids) == 0:
		return ref, server.ErrNotFound
	case len(ids) == 1:
		if ref.SessionID = ids[0]; isAgent {
			ref.SessionID += "/" + agent
		}
		return ref, nil
	}
	no := &server.AmbiguousError{Session: prefix}
	for _, id := range ids {
		x, err := l.find(ctx, server.Ref{SessionID: id, Machine: ref.Machine, Owner: ref.Owner})
		if err != nil {
			return ref, err
		}
		no.Choices = append(no.Choices, x)
	}
	return ref, no
}

func scanName(row Scanner) (name string, err error) { return name, row.Scan(&name) }

// ShortNames implements server.Library.
func (p *Artifacts) ShortNames(ctx context.Context, scope server.Scope, ids []string) (map[string]string, error) {
	var alike Filter
	beginnings := map[string]bool{}
	for _, id := range ids {
		prefix := id[:min(len(id), shortName)]
		end, ok := span(prefix)
		if ok && !beginnings[prefix] {
			beginnings[prefix] = true
			alike.Add(`s.session_id >= ? AND s.session_id < ?`, prefix, end)
		}
	}
	if len(beginnings) == 0 {
		return nil, nil //nolint:nilnil // no names
	}
	var f Filter
	f.Scope(scope)
	f.Add(`s.parent = ''`)
	f.Add(`(`+strings.Join(alike.Conditions, ` OR `)+`)`, alike.Args...)
	names, err := List(ctx, p.db, `SELECT s.session_id FROM streams s `+f.Where()+` ORDER BY s.session_id LIMIT ?`,
		append(f.Args, maxAlike*len(beginnings)), scanName)
	if err != nil {
		return nil, fmt.Errorf("list sessions with like ids: %w", err)
	}
	out := map[string]string{}
	for _, id := range ids {
		if short, ok := shortest(names, id); ok {
			out[id] = short
		}
	}
	return out, nil
}

// shortest returns the shortest beginning of an id that no other one of sorted names has; false if the id is there
// twice.
func shortest(names []string, id string) (string, bool) {
	at, there := slices.BinarySearch(names, id)
	if !there || at+1 < len(names) && names[at+1] == id {
		return "", false
	}
	n := shortName
	for _, other := range []int{at - 1, at + 1} {
		if other < 0 || other >= len(names) {
			continue
		}
		same := 0
		for same < min(len(id), len(names[other])) && id[same] == names[other][same] {
			same++
		}
		n = max(n, same+1)
	}
	return id[:min(n, len(id))], true
}

// Repositories keeps which projects of an owner are one project. A share or a rule counts by project_hash alone: this
// only decides what is listed and summed together. Safe for concurrent use.
type Repositories struct{ stored sync.Map } // repository id by project

// project names a project of an owner, by its hash.
type project struct {
	owner int64
	hash  string
}

// Note stores what batches say of their projects. It is the last step of their transaction: others that store the same
// wait for its end.
func (r *Repositories) Note(ctx context.Context, d Dialect, batches iter.Seq[*server.Batch]) error {
	fresh := map[project]string{}
	for b := range batches {
		x, id := project{b.Owner, CleanText(b.Head.ProjectHash)}, CleanText(b.Head.Repository)
		if old, _ := r.stored.Load(x); x.hash != "" && id != "" && old != id {
			fresh[x] = id
		}
	}
	for _, x := range slices.SortedFunc(maps.Keys(fresh), func(a, b project) int {
		return cmp.Or(cmp.Compare(a.owner, b.owner), strings.Compare(a.hash, b.hash))
	}) {
		n, err := Number(ctx, d, `SELECT count(*) FROM repositories WHERE owner = ? AND project_hash = ? AND repository = ?`,
			x.owner, x.hash, fresh[x])
		if err != nil {
			return err
		}
		if n > 0 {
			r.stored.Store(x, fresh[x])
			continue
		}
		r.stored.Delete(x)
		_, err = d.Exec(ctx, `INSERT INTO repositories (owner, project_hash, repository) VALUES (?, ?, ?)
ON CONFLICT (owner, project_hash) DO UPDATE SET repository = excluded.repository`, x.owner, x.hash, fresh[x])
		if err != nil {
			return err
		}
	}
	return nil
}

// OfProject selects the rows x of a project, given by a hash, a name or a repository: all of its clones and worktrees,
// whichever of them that the scope sees is called so. With fold, case does not matter.
func OfProject(x string, scope server.Scope, project string, fold bool) (condition string, args []any) {
	called := `(substr(s.project, 1, 200) = substr(?, 1, 200) AND s.project IS NOT DISTINCT FROM ?)` // see ofParent
	is, name := x+`.project = ?`, project
	if fold {
		name = strings.ToLower(project)
		called, is = `(lower(s.project) = ? AND lower(s.project) = ?)`, `lower(`+x+`.project) = ?`
	}
	var f Filter
	f.Add(`(`+called+` OR s.project_hash = ?)`, name, name, project)
	f.Scope(scope)
	return `(` + is + ` OR ` + x + `.project_hash = ? OR nullif(` + OneProject(x) + `, '') IN (
  SELECT CAST(? AS text) UNION SELECT ` + OneProject("s") + ` FROM streams s ` + f.Where() + `))`,
		append([]any{name, project, project}, f.Args...)
}

// OneProject returns what the rows x of one project have in common: its repository, or where none is known its hash.
func OneProject(x string) string {
	return `coalesce((SELECT r.repository FROM repositories r
  WHERE r.owner = ` + x + `.owner AND r.project_hash = ` + x + `.project_hash), ` + x + `.project_hash)`
}

// Project lets through the streams s of a project, see OfProject; "": of any.
func (f *Filter) Project(scope server.Scope, project string) {
	if project != "" {
		condition, args := OfProject("s", scope, project, false)
		f.Add(condition, args...)
	}
}

// namedProjects returns the projects that a hash, a name or a repository chooses.
func namedProjects(ctx context.Context, d Dialect, scope server.Scope, name string) (map[project]bool, error) {
	var f Filter
	f.Scope(scope)
	f.Project(scope, name)
	out := map[project]bool{}
	err := d.Query(ctx, `SELECT DISTINCT s.owner, s.project_hash FROM streams s `+f.Where(), f.Args,
		func(row Scanner) error {
			var x project
			err := row.Scan(&x.owner, &x.hash)
			out[x] = true
			return err
		})
	return out, err
}

// repositoriesOf returns what a filter of repositories r lets through, by project.
func repositoriesOf(ctx context.Context, d Dialect, condition string, args ...any) (map[project]string, error) {
	out := map[project]string{}
	err := d.Query(ctx, `SELECT r.owner, r.project_hash, r.repository FROM repositories r WHERE `+condition, args,
		func(row Scanner) error {
			var x project
			var id string
			err := row.Scan(&x.owner, &x.hash, &id)
			out[x] = id
			return err
		})
	return out, err
}

// nameRepositories adds to groups which of them are one project.
func nameRepositories(ctx context.Context, d Dialect, groups []group) error {
	owners := map[int64]bool{}
	for i := range groups {
		owners[groups[i].owner] = true
	}
	for part := range slices.Chunk(slices.Sorted(maps.Keys(owners)), 500) {
		known, err := repositoriesOf(ctx, d, `r.owner IN (`+Marks(len(part))+`)`, Values(part)...)
		if err != nil {
			return err
		}
		for i := range groups {
			g := &groups[i]
			g.repository = cmp.Or(g.repository, known[project{g.owner, g.hash}])
		}
	}
	return nil
}
