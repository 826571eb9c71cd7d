package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/transcript"
)

// mostCounted bounds what a page counts; more is shown as "1 000+".
const mostCounted = 1000

// safety says what would be lost without this server, as far as it can know.
type safety struct {
	Saved, Expiring, Expired, Rewritten amount
}

// amount is a count, perhaps only of the first.
type amount struct {
	N    int64
	More bool // there are more than N
	URL  string
}

func (p *homePages) safety(ctx context.Context, scope server.Scope, drops int64) (s safety, err error) {
	s.Rewritten = amount{drops, drops == maxUsageDrops, p.site.Base + "/drops"}
	for _, x := range []struct {
		to   *amount
		view string
	}{{&s.Saved, ""}, {&s.Expiring, "expiring"}, {&s.Expired, "expired"}} {
		var q server.SessionQuery
		q.ApplyView(x.view, p.now())
		n, err := p.store.Count(ctx, scope, q, mostCounted+1)
		if err != nil {
			return s, err
		}
		*x.to = amount{min(n, mostCounted), n > mostCounted, p.site.Base + page.Address("/", nil, "view", x.view)}
	}
	return s, nil
}

// homeSide is all projects, with sums.
type homeSide struct {
	page.Layout
	filter
	Projects []chipProject
	Sessions int64
	Machines int64
	Bytes    int64
	Tokens   server.Tokens
	Cost     transcript.Cost
	Bare     bool
	Part     bool // there are more projects than are listed: Sessions, Machines and Bytes are not known
	All      string
	Next     string
}

// projects is GET /projects?bare&after: projects, next to the list or as a page of its own.
func (p *homePages) projects(w http.ResponseWriter, r *http.Request, who server.Login) error {
	q, scope := r.URL.Query(), server.ScopeOf(who.User)
	groups, err := p.store.Groups(r.Context(), scope, server.GroupQuery{After: q.Get("after"), Limit: shown})
	if errors.Is(err, server.ErrBadPage) {
		return page.BadRequestError("after must come from a link of this list.")
	}
	if err != nil {
		return err
	}
	usage, err := p.store.Usage(r.Context(), scope, server.UsageQuery{By: []string{"model"}})
	if err != nil {
		return err
	}
	bare, part := q.Get("bare") != "", q.Get("after") != "" || groups.Next != ""
	q.Del("bare")
	s := homeSide{Layout: p.site.Layout(r, who, "Projects", "sessions"), filter: readFilter(q, p.site.Base, "/", nil),
		Projects: projects(groups.List, q, p.site.Base, "/"), Bare: bare,
		Part: part, All: p.site.Base + page.Address("/", q, "project", "", "after", "")}
	if groups.Next != "" {
		s.Next = p.site.Base + page.Address("/projects", q, "after", groups.Next)
	}
	machines := map[string]bool{}
	for _, g := range groups.List {
		s.Sessions += g.Sessions
		s.Bytes += g.Bytes
		machines[g.Machine] = true
	}
	s.Machines = int64(len(machines))
	s.Tokens, s.Cost = sumUsage(p.Prices, usage)
	p.site.Render(w, http.StatusOK, "projects.html", s)
	return nil
}
