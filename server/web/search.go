package web

import (
	"cmp"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"

	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

const (
	// searchPage is how many sessions a page of results has, and searchEach how many lines of each.
	searchPage = 20
	searchEach = 4
)

// found is the page of a search.
type found struct {
	page.Layout
	Asked   bool
	Notes   []string // what of the query was not understood
	Missing []string // words that the best session lacks
	Total   int64
	More    bool // there may be further sessions: the search was to become too much work
	List    []foundSession
	Facets  []facet
	Help    []helpRow // of a page without a query, as is what completes it
	Names   []string
	Saved   saved
	Next    string
}

// foundSession is a session that was found, with its best lines.
type foundSession struct {
	server.RankedSession
	Title, URL string
	Project    string
	Who        string // whose it is, where there are several users
	Lines      []foundLine
}

type foundLine struct {
	server.Hit
	HTML template.HTML
	URL  string
}

// facet is values that the query can be narrowed to. Each link writes its filter into the query, or takes it out.
type facet struct {
	Name   string
	Values []facetValue
}

type facetValue struct {
	page.Choice
	Count int64 // sessions; 0: not counted
}

// search is GET /search?q&after: sessions that a query in the language of server.Query finds.
func (v *Viewer) search(w http.ResponseWriter, r *http.Request, who server.Login) error {
	text := r.URL.Query().Get("q")
	p := found{Layout: v.Layout(r, who, "Search", "search")}
	p.Layout.Query = text
	if strings.TrimSpace(text) != "" {
		p.Title = text + " · Search"
	}
	east := page.Zone(r)
	ask := server.RankQuery{Reader: who.User.ID, Zone: east, After: r.URL.Query().Get("after"), Limit: searchPage,
		Each: searchEach, Facets: true}
	ask.Query = server.ParseQuery(text, v.Now().In(time.FixedZone("", int(east/time.Second))))
	p.Notes, p.Asked = ask.Query.Notes, !ask.Query.Empty()
	var err error
	if p.Saved, err = readSaved(r, v.store, who.User.ID, v.Base, server.SearchPage); err != nil {
		return err
	}
	if p.Asked {
		err = v.rank(r, who, &p, ask)
	} else {
		p.Help = v.searchHelp()
		p.Names, err = v.filterNames(r.Context(), who)
	}
	if err != nil {
		return err
	}
	v.Render(w, http.StatusOK, "search.html", p)
	return nil
}

// rank fills in what a query finds.
func (v *Viewer) rank(r *http.Request, who server.Login, p *found, ask server.RankQuery) error {
	scope := server.ScopeOf(who.User)
	projects, err := derive.ReadProjects(r.Context(), v.store, scope)
	if err != nil {
		return err
	}
	list, err := v.store.Rank(r.Context(), scope, projects.Ask(ask))
	if errors.Is(err, server.ErrBadPage) {
		ask.After = ""
		list, err = v.store.Rank(r.Context(), scope, projects.Ask(ask))
	}
	if err == nil && len(list.List) == 0 {
		err = derive.Unknown(r.Context(), v.store, scope, &ask.Query)
		p.Notes = ask.Query.Notes
	}
	if err != nil {
		return err
	}
	if err := v.shortenRanked(r, scope, list.List); err != nil {
		return err
	}
	names, err := v.owners(r, who, list.List)
	if err != nil {
		return err
	}
	var streams []int64
	for i := range list.List {
		streams = append(streams, list.List[i].ID)
	}
	marks, err := v.store.Marks(r.Context(), who.User.ID, streams)
	if err != nil {
		return err
	}
	p.Missing, p.Total, p.More = list.Missing, list.Total, list.More
	for _, x := range list.List {
		f := v.foundSession(x, names)
		f.Project = projects.Of(&x.Session)
		f.Title = cmp.Or(marks[x.ID].Name, f.Title)
		p.List = append(p.List, f)
	}
	list.Facets.Projects = projects.Counts(list.Facets.Projects)
	p.Facets = facets(v.Base, p.Query, ask.Query, list.Facets)
	if list.Next != "" {
		p.Next = v.Base + page.Address("/search", r.URL.Query(), "after", list.Next)
	}
	return nil
}

// shortenRanked sets the short names of what was found.
func (v *Viewer) shortenRanked(r *http.Request, scope server.Scope, list []server.RankedSession) error {
	var sessions []*server.Session
	for i := range list {
		sessions = append(sessions, &list[i].Session)
		for j := range list[i].Hits {
			sessions = append(sessions, &list[i].Hits[j].Session)
		}
	}
	return shorten(r.Context(), v.store, scope, sessions...)
}

// owners names the users of sessions for a reader who sees those of several.
func (v *Viewer) owners(r *http.Request, who server.Login, list []server.RankedSession) (map[int64]string, error) {
	var ids []int64
	for i := range list {
		if list[i].Owner != who.User.ID {
			ids = append(ids, list[i].Owner)
		}
	}
	if len(ids) == 0 {
		return nil, nil //nolint:nilnil // all are the reader's own
	}
	return v.store.UserNames(r.Context(), ids)
}

func (v *Viewer) foundSession(x server.RankedSession, names map[int64]string) foundSession {
	f := foundSession{RankedSession: x, URL: v.Base + thread.StreamOf(x.Session).Path(""), Who: names[x.Owner],
		Title: x.Summary.Name()}
	if x.Gone != "" {
		f.Title = "A session of which only the prompts are left"
	}
	for _, h := range x.Hits {
		if h.Kind == "title" && len(x.Hits) > 1 && unmarked.Replace(h.Snippet) == f.Title {
			continue // it stands above
		}
		s := thread.StreamOf(h.Session)
		if !h.Current {
			s.Epoch, s.Generation = h.Epoch, h.Generation
		}
		f.Lines = append(f.Lines, foundLine{h, snippet(h.Kind, h.Snippet), v.Base + s.LinePath(h.Line)})
	}
	return f
}

// facets are what a query can be narrowed to.
func facets(base, text string, q server.Query, f protocol.Facets) (out []facet) {
	link := func(text string) string { return base + page.Address("/search", url.Values{"q": {text}}) }
	add := func(title, name string, values []protocol.Count, label func(string) string) {
		x := facet{Name: title}
		for _, c := range values {
			on := slices.ContainsFunc(q.Only[name], func(v string) bool { return strings.EqualFold(v, c.Value) })
			next := server.WithFilter(text, name, c.Value)
			if on {
				next = server.WithoutFilter(text, name, c.Value)
			}
			x.Values = append(x.Values, facetValue{page.Choice{Name: label(c.Value), URL: link(next), On: on}, c.Count})
		}
		if len(x.Values) > 0 {
			out = append(out, x)
		}
	}
	same := func(s string) string { return s }
	add("Project", "project", f.Projects, same)
	add("What", "kind", f.Kinds, kindName)
	months := facet{Name: "When"}
	for _, c := range f.Months {
		first, err := time.Parse("2006-01", c.Value)
		if err != nil {
			continue
		}
		plain := server.WithoutFilter(server.WithoutFilter(text, "after", ""), "before", "")
		next := server.WithFilter(plain, "after", c.Value)
		next = server.WithFilter(next, "before", first.AddDate(0, 1, 0).Format("2006-01"))
		on := next == text
		if on {
			next = plain
		}
		months.Values = append(months.Values,
			facetValue{page.Choice{Name: first.Format("January 2006"), URL: link(next), On: on}, c.Count})
	}
	if len(months.Values) > 0 {
		out = append(out, months)
	}
	var states []protocol.Count
	for _, s := range server.SessionStates() {
		states = append(states, protocol.Count{Value: s})
	}
	add("Only", "is", states, stateName)
	return out
}

// kindName is a kind of texts, as people say it.
func kindName(kind string) string {
	words := map[string]string{"prompt": "Prompts", "message": "Messages of others", "answer": "Responses",
		"thinking": "Thinking", "tool": "Tool calls", "result": "Results", "title": "Titles",
		"other": "Attachments and the rest", server.HistoryKind: "Prompts of sessions that are gone",
		server.EditKind: "Files changed", server.ReadKind: "Files read", server.CommandKind: "Commands run",
		server.ErrorKind: "Errors"}
	return cmp.Or(words[kind], kind)
}

func stateName(state string) string {
	words := map[string]string{"error": "with errors", "starred": "starred", "lost": "with lines lost in a rewind",
		"running": "running now"}
	return cmp.Or(words[state], state)
}
