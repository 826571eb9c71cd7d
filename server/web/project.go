package web

import (
	"context"
	"net/url"
	"slices"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/recall"

	"github.com/ccship/ccship/server/web/page"
)

// chipProject is a project that a listing can be narrowed to.
type chipProject struct {
	recall.Project
	URL string
	On  bool
}

// shown is how many groups a page lists or offers: those that were heard last.
const shown = recall.MostProjects

// groups returns what a page offers to choose from, and what its query has chosen.
func groups(ctx context.Context, st server.SessionFinder, scope server.Scope, q url.Values) ([]server.Group, error) {
	page, err := st.Groups(ctx, scope, server.GroupQuery{Limit: shown})
	chosen := q.Get("project")
	if err != nil || page.Next == "" || chosen == "" || slices.ContainsFunc(recall.ProjectsOf(page.List).List,
		func(p recall.Project) bool { return p.Name == chosen }) {
		return page.List, err
	}
	more, err := st.Groups(ctx, scope, server.GroupQuery{Project: chosen, Limit: shown})
	return append(page.List, more.List...), err
}

// projects are chips of groups, with addresses of the page at base and path.
func projects(groups []server.Group, q url.Values, base, path string) (out []chipProject) {
	for _, p := range recall.ProjectsOf(groups).List {
		out = append(out, chipProject{Project: p, On: q.Get("project") == p.Name,
			URL: base + page.Address(path, q, "project", p.Name, "after", "")})
	}
	return out
}
