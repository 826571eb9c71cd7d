package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/page"
)

// mark adds what the reader keeps about the sessions of a list.
func (p *homePages) mark(ctx context.Context, reader int64, groups []group) error {
	var streams []int64
	for _, g := range groups {
		for i := range g.Sessions {
			streams = append(streams, g.Sessions[i].ID)
		}
	}
	marks, err := p.store.Marks(ctx, reader, streams)
	if err != nil {
		return err
	}
	for _, g := range groups {
		for i := range g.Sessions {
			s := &g.Sessions[i]
			s.Mark = marks[s.ID]
			s.Title = cmp.Or(s.Mark.Name, s.Title)
		}
	}
	return nil
}

// setMark is POST /sessions/{id}/mark?machine&owner with star, name, tags and note: what the reader keeps about a
// session. With only=star the rest stays.
func (p *homePages) setMark(w http.ResponseWriter, r *http.Request, who server.Login) error {
	f, s := r.PostForm, parseStream(r)
	at, err := p.store.Resolve(r.Context(), server.ScopeOf(who.User), s.Ref())
	if err != nil {
		return err
	}
	m := server.Mark{Name: f.Get("name"), Note: f.Get("note"), Tags: strings.Split(f.Get("tags"), ",")}
	if f.Get("only") == "star" {
		old, err := p.store.Marks(r.Context(), who.User.ID, []int64{at.Stream})
		if err != nil {
			return err
		}
		m = old[at.Stream]
	}
	m.Stream, m.Star, m.Updated = at.Stream, f.Get("star") != "", p.now().UTC()
	if bad, ok := errors.AsType[server.MarkError](m.Tidy()); ok {
		return page.BadRequestError(bad.Error())
	}
	if err := p.store.SetMark(r.Context(), who.User.ID, m); err != nil {
		return err
	}
	if s.Machine == nil && s.User == 0 {
		s.Short = s.ID
	}
	http.Redirect(w, r, p.site.Base+s.Path(""), http.StatusSeeOther)
	return nil
}
