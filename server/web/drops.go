package web

import (
	"net/http"
	"strconv"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

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
