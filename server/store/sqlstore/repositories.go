package sqlstore

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/ccship/ccship/server"
)

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
