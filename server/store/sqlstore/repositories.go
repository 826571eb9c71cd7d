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
		n, err := one(ctx, d, `SELECT count(*) FROM repositories WHERE owner = ? AND project_hash = ? AND repository = ?`,
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

// ofProject selects the rows s of a project, given by its hash, its name or its repository.
func ofProject(project string) (condition string, args []any) {
	return `(s.project_hash = ? OR s.project = ? OR EXISTS (SELECT 1 FROM repositories r
  WHERE r.owner = s.owner AND r.project_hash = s.project_hash AND r.repository = ?))`, []any{project, project, project}
}

// oneProject is what rows s of one project have in common.
const oneProject = `coalesce((SELECT r.repository FROM repositories r
  WHERE r.owner = s.owner AND r.project_hash = s.project_hash), s.project_hash)`

// repositoriesOf are what a filter of repositories r lets through, by project.
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
