package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
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

const maxDrops = 500

type dropsPage struct {
	page.Layout
	List []dropRow
	More bool
}

type dropRow struct {
	server.Drop
	Title, URL, Compare string
	Whole               bool // all lines between First and Last are dropped
}

// drops is GET /drops: rewrites that took lines out of files. The server still has all these lines.
func (v *Viewer) drops(w http.ResponseWriter, r *http.Request, who server.Login) error {
	owner, err := v.ownerOf(r, who)
	if err != nil {
		return err
	}
	list, err := v.store.Drops(r.Context(), server.ScopeOf(who.User),
		server.DropQuery{Session: r.URL.Query().Get("session"), User: owner, Limit: maxDrops})
	if err != nil {
		return err
	}
	p := dropsPage{Layout: v.Layout(r, who, "Rewinds", "drops"), More: len(list) == maxDrops}
	sessions := make([]*server.Session, len(list))
	for i := range list {
		sessions[i] = &list[i].Session
	}
	if err := shorten(r.Context(), v.store, server.ScopeOf(who.User), sessions...); err != nil {
		return err
	}
	for _, d := range list {
		s := thread.StreamOf(d.Session)
		s.Epoch = d.Epoch
		facts, err := v.store.SummaryOf(r.Context(), d.Session.ID)
		if err != nil {
			return err
		}
		p.List = append(p.List, dropRow{Drop: d, Whole: d.Lines == d.Last-d.First, URL: v.Base + s.Path(""),
			Title:   facts.Name(),
			Compare: v.Base + s.Path("/compare", "b", strconv.FormatInt(d.Generation, 10))})
	}
	v.Render(w, http.StatusOK, "drops.html", p)
	return nil
}
