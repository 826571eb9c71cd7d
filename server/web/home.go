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
	"github.com/ccship/ccship/server/derive"

	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/transcript"
)

// listPage is how many sessions a page lists.
const listPage = 60

// listTopMost is how many sessions a view of those that have the most lists.
const listTopMost = 30

// homeStore is what the pages read.
type homeStore interface {
	shortNamer
	server.SessionFinder
	Usage(ctx context.Context, scope server.Scope, q server.UsageQuery) ([]server.UsageRow, error)
	userFinder
	UserNames(ctx context.Context, ids []int64) (map[int64]string, error)
	server.Marks
	server.SavedViews
}

// homePages are the list of sessions and its parts. Set Prices before serving.
type homePages struct {
	Prices *transcript.Prices // what tokens cost

	site  *page.Site
	store homeStore
	now   func() time.Time

	endings endings
}

// Routes are the pages by pattern.
func (p *homePages) Routes() map[string]page.Handler {
	return map[string]page.Handler{
		"GET /{$}":      p.front,
		"GET /p/{name}": p.front,
		"GET /now":      p.running,
		"GET /beside":   p.beside,

		"POST /sessions/{id}/mark": p.setMark,
		"POST /views":              p.saveView,
		"GET /projects":            p.projects,
		"GET /activity":            p.activity,
	}
}

// list is the page of sessions.
type list struct {
	page.Layout
	filter
	Tags   []page.Choice
	Chips  []filterChip
	Saved  saved
	View   view
	Views  []page.Choice
	Orders []page.Choice
	Days   bool // sessions are listed by day
	Safety safety
	Now    []card
	Groups []group
	Side   string // address of the projects
	Piece  string // and of them without a page around
	Offer  string // address of the page with all filters; "" when it has them
	First  string // address of the newest page; "" on it
	Next   string
	Empty  bool // nothing has arrived at all
	// Action is the address of the list without what narrows it besides its project, Narrowed a query of all that does.
	Action, Narrowed string

	projects *derive.Projects
}

// view is a saved view: sessions that stand in some way.
type view struct{ Key, Name, Words string }

func views() []view {
	return []view{
		{"", "All", ""},
		{"starred", "Starred", "Sessions that you have starred. Nobody else sees what you keep."},
		{"failed", "With errors", "Sessions in which a tool or a response failed."},
		{"costly", "Most expensive",
			"The sessions that cost the most in the last 90 days, with their agents, at list prices."},
		{"tokens", "Most tokens", "The sessions that used the most tokens in the last 90 days, with their agents."},
		{"long", "Longest", "The sessions of the last 90 days with the most time between their first and their last line."},
		{"expiring", "Expiring", "Last written at least 23 days ago. Claude Code deletes transcripts after 30 days unless " +
			"its cleanupPeriodDays says otherwise. These copies stay."},
		{"expired", "Past 30 days", "Last written more than 30 days ago. With its default settings Claude Code has deleted " +
			"these. This server cannot see the machines’ disks: some files may still be there. These copies stay."},
	}
}

// front is GET / and GET /p/{name}, of one project, with ?by&view&q&machine&user&model&branch&since&until&after:
// sessions, most recently active first.
func (p *homePages) front(w http.ResponseWriter, r *http.Request, who server.Login) error {
	if r.PathValue("name") == "" && r.URL.Query().Get("project") != "" {
		http.Redirect(w, r, p.site.Base+page.Address("/", r.URL.Query()), http.StatusSeeOther)
		return nil
	}
	here := r.URL.RequestURI()
	return p.list(w, ofProject(r), who, here)
}

// list is the list of sessions, at the address here.
func (p *homePages) list(w http.ResponseWriter, r *http.Request, who server.Login, here string) error {
	q, scope := r.URL.Query(), server.ScopeOf(who.User)
	most := anyUsers
	if offers(q) {
		most = allUsers
	}
	users, err := userChips(r.Context(), p.store, who, q, most)
	if err != nil {
		return err
	}
	l := list{Layout: p.site.Layout(r, who, cmp.Or(q.Get("project"), "Sessions"), "sessions"),
		Narrowed: strings.TrimPrefix(page.Address("", q, "after", "", "by", "", "filters", ""), "?"),
		Action:   p.site.Base + page.Address("/", url.Values{"project": q["project"]}),
		filter:   readFilter(q, p.site.Base, "/", users),
		Side:     p.site.Base + page.Address("/projects", q, "after", ""),
		Piece:    p.site.Base + page.Address("/projects", q, "after", "", "bare", "1")}
	l.Here = here
	p.choose(w, r, &l)
	if err := p.kept(r, who.User.ID, &l); err != nil {
		return err
	}
	if err := p.offer(r, scope, &l); err != nil {
		return err
	}
	find, projects, err := p.narrowed(r, who, users)
	if err != nil {
		return err
	}
	l.projects, find.Page.Limit = projects, listPage
	if server.OrderOf(l.View.Key) != "" {
		return p.listTop(w, r, who, &l, find)
	}
	found, err := p.findShort(r.Context(), scope, find)
	if errors.Is(err, server.ErrBadPage) {
		http.Redirect(w, r, p.site.Base+page.Address("/", q, "after", ""), http.StatusSeeOther)
		return nil
	}
	if err != nil {
		return err
	}
	if err := p.fill(r, scope, &l, found); err != nil {
		return err
	}
	return p.show(w, r, who, &l)
}

// narrowed reads which sessions a request asks for, and the projects that there are.
func (p *homePages) narrowed(r *http.Request, who server.Login,
	users []server.User) (find server.SessionQuery, projects *derive.Projects, err error) {
	q := r.URL.Query()
	if projects, err = derive.ReadProjects(r.Context(), p.store, server.ScopeOf(who.User)); err != nil {
		return find, nil, err
	}
	find = readFilter(q, p.site.Base, "/", users).Query(p.now(), page.Zone(r))
	find.Project = projects.Key(find.Project)
	find.ApplyView(q.Get("view"), p.now())
	find.Reader, find.Tag = who.User.ID, q.Get("tag")
	find.Page = server.Page{After: q.Get("after"), Recent: true}
	return find, projects, nil
}

// show renders a list with what the reader keeps about its sessions, and what came of them.
func (p *homePages) show(w http.ResponseWriter, r *http.Request, who server.Login, l *list) error {
	if err := p.mark(r.Context(), who.User.ID, l.Groups); err != nil {
		return err
	}
	if err := p.came(r.Context(), server.ScopeOf(who.User), l.Groups); err != nil {
		return err
	}
	p.site.Render(w, http.StatusOK, "list.html", l)
	return nil
}

// ofProject is a request with the project that its path names in its query, where everything narrows the list.
func ofProject(r *http.Request) *http.Request {
	q := r.URL.Query()
	q.Set("project", r.PathValue("name"))
	if r.PathValue("name") == "" {
		return r
	}
	to := r.WithContext(r.Context())
	u := *r.URL
	u.RawQuery, to.URL = q.Encode(), &u
	return to
}

// kept adds what the reader keeps to choose by: tags and saved views.
func (p *homePages) kept(r *http.Request, reader int64, l *list) error {
	q := r.URL.Query()
	tags, err := p.store.Tags(r.Context(), reader)
	if err != nil {
		return err
	}
	if t := q.Get("tag"); t != "" && !slices.Contains(tags, t) {
		tags = append(tags, t) // can be taken off
	}
	for _, t := range tags {
		next := t
		if t == q.Get("tag") {
			next = "" // again takes it off
		}
		l.Tags = append(l.Tags, page.Choice{Name: t, On: next == "",
			URL: p.site.Base + page.Address("/", q, "tag", next, "after", "")})
	}
	l.Saved, err = readSaved(r, p.store, reader, p.site.Base, server.SessionsPage)
	return err
}

// listTop shows the sessions that have the most of something.
func (p *homePages) listTop(w http.ResponseWriter, r *http.Request, who server.Login, l *list,
	find server.SessionQuery) error {
	find.Page = server.Page{Limit: listTopMost}
	list, err := p.most().Find(r.Context(), server.ScopeOf(who.User), find, server.OrderOf(l.View.Key))
	if err != nil {
		return err
	}
	if l.Orders = nil; len(list) > 0 {
		l.Groups = []group{{Name: l.View.Name, Sessions: p.topRows(list)}}
	}
	return p.show(w, r, who, l)
}

// fill adds the sessions, and on the first page of all what stands above them.
func (p *homePages) fill(r *http.Request, scope server.Scope, l *list, found server.Found) error {
	q := r.URL.Query()
	drops, err := p.store.Dropped(r.Context(), scope, found.List, maxUsageDrops)
	if err != nil {
		return err
	}
	names, err := p.who(r.Context(), l, found.List)
	if err != nil {
		return err
	}
	rows := p.rows(found.List, l.projects, names, drops.Streams)
	if l.Days {
		l.Groups = byDay(rows, p.now(), page.Zone(r))
	} else {
		l.Groups = byProject(rows)
	}
	if q.Get("after") != "" {
		l.First = p.site.Base + page.Address("/", q, "after", "")
	}
	if found.Next != "" {
		l.Next = p.site.Base + page.Address("/", q, "after", found.Next)
	}
	if len(q) > 0 && !(len(q) == 1 && q.Has("by")) {
		return nil
	}
	l.Empty = len(found.List) == 0
	if l.Now, err = p.cards(r.Context(), scope); err != nil {
		return err
	}
	l.Safety, err = p.safety(r.Context(), scope, drops.Count)
	return err
}

const (
	orderCookie = "ccship_order"
	byProjectIs = "project"
)

// choose reads the view and the order, and remembers the order in the browser.
func (p *homePages) choose(w http.ResponseWriter, r *http.Request, l *list) {
	q := r.URL.Query()
	for _, v := range views() {
		on := q.Get("view") == v.Key
		if on {
			l.View = v
		}
		l.Views = append(l.Views, page.Choice{Name: v.Name, On: on,
			URL: p.site.Base + page.Address("/", q, "view", v.Key, "after", "")})
	}
	order := q.Get("by")
	if order == "" {
		if c, err := r.Cookie(orderCookie); err == nil {
			order = c.Value
		}
	} else {
		http.SetCookie(w, &http.Cookie{Name: orderCookie, Value: url.QueryEscape(order), Path: p.site.Base + "/",
			MaxAge: 365 * 24 * 3600, SameSite: http.SameSiteLaxMode, HttpOnly: true, Secure: r.TLS != nil})
	}
	l.Days = order != byProjectIs
	for _, o := range []struct{ key, name string }{{"day", "By day"}, {byProjectIs, "By project"}} {
		l.Orders = append(l.Orders, page.Choice{Name: o.name, On: l.Days == (o.key == "day"),
			URL: p.site.Base + page.Address("/", q, "by", o.key, "after", "")})
	}
}

// offers says whether the reader of a page's address narrows the list.
func offers(q url.Values) bool {
	f := readFilter(q, "", "/", nil)
	return f.Narrow || q.Has("filters")
}

// offer adds what the list can be narrowed to, when the reader narrows it: that takes a look at everything.
func (p *homePages) offer(r *http.Request, scope server.Scope, l *list) error {
	q := r.URL.Query()
	if !offers(q) {
		l.Offer = p.site.Base + page.Address("/", q, "filters", "1", "after", "")
		return nil
	}
	groups, err := groups(r.Context(), p.store, scope, q)
	if err != nil {
		return err
	}
	usage, err := p.store.Usage(r.Context(), scope, server.UsageQuery{By: []string{"model"}})
	l.filter.Offer(groups, usage)
	l.Chips = l.filter.Chips(q, p.site.Base, "/", projects(groups, q, p.site.Base, "/"))
	return err
}
