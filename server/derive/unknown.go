package derive

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/ccship/ccship/server"
)

// Names is what a reader's queries may name.
type Names interface {
	Groups(ctx context.Context, scope server.Scope, q server.GroupQuery) (server.Groups, error)
	Usage(ctx context.Context, scope server.Scope, q server.UsageQuery) ([]server.UsageRow, error)
	UserNames(ctx context.Context, ids []int64) (map[int64]string, error)
	FindUser(ctx context.Context, name string) (server.User, error)
}

// Unknown notes which projects, machines, users and models of a query are none that the reader sees, each with the
// nearest. An owner sees users without a session too. It is for a query that found nothing.
func Unknown(ctx context.Context, st Names, scope server.Scope, q *server.Query) error {
	o := q.Only
	if len(o["project"])+len(o["machine"])+len(o["user"])+len(o["model"]) == 0 {
		return nil
	}
	page, err := st.Groups(ctx, scope, server.GroupQuery{})
	if err != nil {
		return err
	}
	p := ProjectsOf(page.List)
	var projects, machines, others []string
	var owners []int64
	for _, g := range page.List {
		projects = append(projects, p.Name(projectID(g)))
		machines = append(machines, cmp.Or(g.Host, g.Machine))
		others, owners = append(others, g.Project, g.ProjectHash, g.Repository, g.Machine), append(owners, g.Owner)
	}
	unknown(q, "project", projects, others)
	unknown(q, "machine", machines, others)
	if len(o["user"]) > 0 {
		users, err := st.UserNames(ctx, append(owners, scope.User))
		if err != nil {
			return err
		}
		quiet := []string{"me", "@me"} // may have no session
		for _, name := range o["user"] {
			if !scope.All {
				break // there are only those whose sessions are seen
			}
			if u, err := st.FindUser(ctx, name); err == nil {
				quiet = append(quiet, u.Name)
			}
		}
		unknown(q, "user", slices.Sorted(maps.Values(users)), quiet)
	}
	if len(o["model"]) == 0 {
		return nil
	}
	used, err := st.Usage(ctx, scope, server.UsageQuery{By: []string{"model"}})
	var models, parts []string
	for _, u := range used {
		models = append(models, u.Model)
		for _, asked := range o["model"] {
			if strings.Contains(strings.ToLower(u.Model), strings.ToLower(asked)) {
				parts = append(parts, asked)
			}
		}
	}
	unknown(q, "model", models, parts)
	return err
}

// unknown notes which values of a filter are neither names nor anything else that it takes.
func unknown(q *server.Query, filter string, names, others []string) {
	for _, value := range q.Only[filter] {
		is := func(name string) bool { return strings.EqualFold(name, value) }
		if !slices.ContainsFunc(names, is) && !slices.ContainsFunc(others, is) {
			q.Unknown(filter, value, names)
		}
	}
}
