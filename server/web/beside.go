package web

import (
	"errors"
	"net/http"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/web/page"
)

// besidePage is how many sessions stand next to a conversation at first.
const besidePage = 40

// beside is sessions in few words.
type beside struct {
	Current string // session that is open
	Groups  []group
	Next    string
}

// beside is GET /beside?current&after, with what the list is narrowed to: sessions next to a conversation.
func (p *homePages) beside(w http.ResponseWriter, r *http.Request, who server.Login) error {
	q := r.URL.Query()
	users, err := userChips(r.Context(), p.store, who, q, anyUsers)
	if err != nil {
		return err
	}
	find, projects, err := p.narrowed(r, who, users)
	if err != nil {
		return err
	}
	find.Page.Limit = besidePage
	found, err := p.findShort(r.Context(), server.ScopeOf(who.User), find)
	if errors.Is(err, server.ErrBadPage) {
		return page.BadRequestError("after must come from a link of this list.")
	}
	if err != nil {
		return err
	}
	b := beside{Current: q.Get("current"), Groups: byDay(p.rows(found.List, projects, nil, nil), p.now(), page.Zone(r))}
	if err := p.mark(r.Context(), who.User.ID, b.Groups); err != nil {
		return err
	}
	if found.Next != "" {
		b.Next = p.site.Base + page.Address("/beside", q, "after", found.Next)
	}
	p.site.Render(w, http.StatusOK, "beside.html", b)
	return nil
}
