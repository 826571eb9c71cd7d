package web

import (
	"cmp"
	"errors"
	"net/http"
	"slices"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

const searchPage = 30

// searchKinds are the kinds that can be searched separately, with their names for people.
var searchKinds = []struct{ Kind, Name string }{
	{"prompt", "prompts"}, {"answer", "answers"}, {"thinking", "thinking"}, {"tool", "tool calls"},
	{"result", "results"}, {"title", "titles"},
}

type found struct {
	page.Layout
	filter
	Kinds      []choice
	Superseded bool
	Session    string
	Projects   []projectRow
	Hits       []hit
	Next       string
	Asked      bool
	owner      int64 // of the session; 0: none is named
}

type hit struct {
	server.Hit
	Title, URL string
}

// search is GET /search?q&kind&project&machine&user&model&since&until&superseded&session: lines that contain words.
func (v *Viewer) search(w http.ResponseWriter, r *http.Request, who server.Login) error {
	q := r.URL.Query()
	scope := server.ScopeOf(who.User)
	groups, err := v.store.Groups(r.Context(), scope)
	if err != nil {
		return err
	}
	users, err := v.users(r, who)
	if err != nil {
		return err
	}
	models, err := v.store.Usage(r.Context(), scope, server.UsageQuery{By: []string{"model"}})
	if err != nil {
		return err
	}
	p := found{Layout: v.Layout(r, who, "Search", "search"), filter: v.filterOf(q, groups, models, users),
		Superseded: q.Get("superseded") != "", Session: q.Get("session"), Projects: v.projects(groups, q)}
	p.Query = p.Text
	if p.owner, err = v.ownerOf(r, who); err != nil {
		return err
	}
	for _, k := range searchKinds {
		p.Kinds = append(p.Kinds, choice{k.Name, k.Kind, slices.Contains(q["kind"], k.Kind)})
	}
	if p.Asked = p.Text != ""; p.Asked {
		if err := v.find(r, scope, &p, groups, users); err != nil {
			return err
		}
	}
	v.Render(w, http.StatusOK, "search.html", p)
	return nil
}

func (v *Viewer) find(r *http.Request, scope server.Scope, p *found, groups []server.Group, users []server.User) error {
	q := r.URL.Query()
	f := p.filter.query(groups, users, zone(r))
	sq := server.SearchQuery{Text: p.Text, Project: f.Project, Machine: f.Machine, User: f.User, Model: f.Model,
		Session: p.Session, Since: f.Since, Until: f.Until, Superseded: p.Superseded, After: q.Get("after"),
		Limit: searchPage}
	if p.owner != 0 {
		sq.User = p.owner
	}
	for _, k := range p.Kinds {
		if k.On {
			sq.Kinds = append(sq.Kinds, k.URL)
		}
	}
	hits, err := v.store.Search(r.Context(), scope, sq)
	if errors.Is(err, server.ErrBadPage) {
		sq.After = ""
		hits, err = v.store.Search(r.Context(), scope, sq)
	}
	if err != nil {
		return err
	}
	for _, h := range hits.List {
		s := thread.StreamOf(h.Session)
		if !h.Current {
			s.Epoch, s.Generation = h.Epoch, h.Generation
		}
		p.Hits = append(p.Hits, hit{h, cmp.Or(h.Summary.Title, h.Summary.FirstPrompt, h.Session.SessionID),
			v.Base + s.LinePath(h.Line)})
	}
	if hits.Next != "" {
		next := r.URL.Query()
		next.Set("after", hits.Next)
		p.Next = v.Base + "/search?" + next.Encode()
	}
	return nil
}
