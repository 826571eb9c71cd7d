package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/page"
)

// filter is the reader's choice for a listing, and the possible choices.
type filter struct {
	Text, Project, Machine, User, Model, Branch string
	Since, Until                                string // 2026-11-21
	Narrow                                      bool   // by something else than text
	Any                                         bool
	Machines                                    []page.Choice
	Models                                      []string
	Users                                       []server.User
	Typed                                       bool // there are more users than are offered: a name is typed
	Clear                                       string
}

// readFilter reads the filter of an address below base. users are those whose sessions the reader may choose.
func readFilter(q url.Values, base, path string, users []server.User) filter {
	f := filter{Text: q.Get("q"), Project: q.Get("project"), Machine: q.Get("machine"), User: q.Get("user"),
		Model: q.Get("model"), Branch: q.Get("branch"), Since: q.Get("since"), Until: q.Get("until"), Users: users,
		Typed: len(users) > shown}
	f.Narrow = f.Machine+f.User+f.Model+f.Branch+f.Since+f.Until != ""
	f.Any = f.Narrow || f.Text != ""
	f.Clear = base + page.Address(path, url.Values{}, "project", f.Project)
	return f
}

// Offer adds the machines and models that there are.
func (f *filter) Offer(groups []server.Group, usage []server.UsageRow) {
	seen := map[string]bool{}
	for _, g := range groups {
		if !seen[g.Machine] {
			seen[g.Machine] = true
			f.Machines = append(f.Machines, page.Choice{Name: cmp.Or(g.Host, g.Machine, "(a plain client)"),
				URL: machineParam(g.Machine), On: f.Machine == machineParam(g.Machine)})
		}
	}
	for _, u := range usage {
		if u.Model != "" && !slices.Contains(f.Models, u.Model) {
			f.Models = append(f.Models, u.Model)
		}
	}
	slices.Sort(f.Models)
}

// machineParam returns a machine in an address, where "" means any of them.
func machineParam(m string) string {
	if m == "" {
		return "-"
	}
	return m
}

// Query returns the filter for the store, in a zone east of UTC. Values that mean nothing are ignored.
func (f filter) Query(now time.Time, east time.Duration) server.SessionQuery {
	q := server.SessionQuery{Text: f.Text, Project: f.Project, Model: f.Model, Branch: f.Branch}
	if f.Machine != "" {
		m := f.Machine
		if m == "-" {
			m = ""
		}
		q.Machine = &m
	}
	for _, u := range f.Users {
		if u.Name == f.User {
			q.User = u.ID
		}
	}
	q.Since, q.Until = server.Days(f.Since, f.Until, now, east)
	return q
}

// userFinder finds users of the server.
type userFinder interface {
	FirstUsers(ctx context.Context, most int) ([]server.User, error)
	FindUser(ctx context.Context, name string) (server.User, error)
}

// allUsers and AnyUsers are how many users a page reads that offers them, and one that only says whether there are
// several.
const (
	allUsers = shown + 1
	anyUsers = 2
)

// userChips lists users that an owner may filter by, as many as most or fewer, and with them the one that q has chosen.
// It is empty for others, and when there is only one user.
func userChips(ctx context.Context, st userFinder, who server.Login, q url.Values, most int) ([]server.User, error) {
	if who.User.Role != server.Owner {
		return nil, nil
	}
	users, err := st.FirstUsers(ctx, most)
	if err != nil || len(users) < anyUsers {
		return nil, err
	}
	chosen := q.Get("user")
	if chosen == "" || slices.ContainsFunc(users, func(u server.User) bool { return u.Name == chosen }) {
		return users, nil
	}
	u, err := st.FindUser(ctx, chosen)
	if errors.Is(err, server.ErrNotFound) {
		return users, nil
	}
	return append(users, u), err
}

// filterChip is one thing that a listing is narrowed to. URL is the page without it.
type filterChip struct{ Name, Value, URL string }

// Chips returns what the address q of a page narrows its listing to. Call it after Offer, which knows names.
func (f filter) Chips(q url.Values, base, path string, projects []chipProject) (out []filterChip) {
	add := func(name, value, param string) {
		if value != "" {
			out = append(out, filterChip{name, value, base + page.Address(path, q, "after", "", param, "")})
		}
	}
	project, machine := f.Project, f.Machine
	for _, p := range projects {
		if p.Key == project {
			project = p.Name
		}
	}
	for _, m := range f.Machines {
		if m.On {
			machine = m.Name
		}
	}
	add("project", project, "project")
	add("machine", machine, "machine")
	add("user", f.User, "user")
	add("model", f.Model, "model")
	add("branch", f.Branch, "branch")
	add("from", daysAgo(f.Since), "since")
	add("to", f.Until, "until")
	return out
}

// daysAgo returns the beginning of a listing in words: 7d is 7 days ago.
func daysAgo(since string) string {
	days, isAge := strings.CutSuffix(since, "d")
	if n := page.Number(days, -1); isAge && n >= 0 {
		return page.Count(n, "day") + " ago"
	}
	return since
}

// saveView is POST /views with name, page and query: what a page shows, under a name. With remove the view of that name
// is removed, and the page stays as it is.
func (p *homePages) saveView(w http.ResponseWriter, r *http.Request, who server.Login) error {
	f := r.PostForm
	v := server.SavedView{Name: f.Get("name"), Page: f.Get("page"), Query: f.Get("query"), Updated: p.now().UTC()}
	err := v.Tidy()
	switch {
	case err != nil:
	case f.Get("remove") != "":
		err = p.store.RemoveView(r.Context(), who.User.ID, v.Name)
		if errors.Is(err, server.ErrNotFound) {
			err = nil // it is gone, as was asked
		}
	default:
		err = p.store.SaveView(r.Context(), who.User.ID, v)
	}
	if bad, ok := errors.AsType[server.ViewError](err); ok {
		return page.BadRequestError(bad.Error())
	}
	if err != nil {
		return err
	}
	http.Redirect(w, r, p.site.Base+v.Path(), http.StatusSeeOther)
	return nil
}

// saved is the views that the reader has saved, and what can be done with the current page: saved under a name, or, if
// it shows a saved view, removed.
type saved struct {
	Views []page.Choice
	Page  string // server.SessionsPage or server.SearchPage
	Query string // of the page; "": it filters nothing, so it can't be saved
	Name  string // of the saved view that the page shows
}

// readSaved reads a user's views for what a page of a site at base shows with a query.
func readSaved(r *http.Request, st server.SavedViews, reader int64, base, of string) (s saved, err error) {
	q := r.URL.Query()
	list, err := st.SavedViews(r.Context(), reader)
	if err != nil {
		return s, err
	}
	this := server.SavedView{Name: "this", Page: of, Query: q.Encode()}
	if s.Page = of; this.Tidy() == nil {
		s.Query = this.Query
	}
	for _, v := range list {
		on := v.Is(of, q)
		if on {
			s.Name = v.Name
		}
		s.Views = append(s.Views, page.Choice{Name: v.Name, On: on, URL: base + v.Path()})
	}
	return s, nil
}

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
