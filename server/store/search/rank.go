package search

import (
	"context"
	"slices"
	"strings"

	"github.com/ccship/ccship/server"
)

// Rank implements server.Searcher.
func (x *Index) Rank(ctx context.Context, scope server.Scope, a server.Ask) (server.Ranked, error) {
	q := server.SearchQuery{Since: a.Query.After, Until: a.Query.Before, Kinds: a.Query.Only["kind"], Superseded: true,
		After: a.After, Limit: a.Limit * a.Each}
	for _, c := range a.Query.Clauses {
		text := c[0].Text
		if c[0].Exact {
			text = `"` + text + `"`
		}
		q.Text += text + " "
	}
	first := func(name string) string {
		return strings.Join(a.Query.Only[name][:min(1, len(a.Query.Only[name]))], "")
	}
	q.Project, q.Tool, q.File, q.Session, q.Model = first("project"), first("tool"), first("file"), first("session"),
		first("model")
	hits, err := x.Search(ctx, scope, q)
	if err != nil {
		return server.Ranked{}, err
	}
	out := server.Ranked{Next: hits.Next, More: hits.More}
	for _, h := range hits.List {
		i := slices.IndexFunc(out.List, func(r server.RankedSession) bool { return r.ID == h.Session.ID })
		if i < 0 {
			out.List = append(out.List, server.RankedSession{FoundSession: server.FoundSession{Session: h.Session,
				Summary: h.Summary}})
			i = len(out.List) - 1
		}
		if len(out.List[i].Hits) < a.Each {
			out.List[i].Hits = append(out.List[i].Hits, h)
		}
	}
	out.Total = int64(len(out.List))
	return out, nil
}
