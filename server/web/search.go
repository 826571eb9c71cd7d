package web

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

const (
	searchPage = 60
	// fewHits is how many lines of a session stand open; the others unfold.
	fewHits = 4
)

// searchKinds are the kinds that can be searched separately, with their names for people.
var searchKinds = []struct{ Kind, Name string }{
	{"prompt", "Prompts"}, {"message", "Messages of others"}, {"answer", "Responses"},
	{"thinking", "Thinking"}, {"tool", "Tool calls"},
	{"result", "Results"}, {"title", "Titles"}, {"other", "Attachments, snapshots, other"},
	{server.HistoryKind, "Prompts of sessions that are gone"},
	{server.CommandKind, "Commands run"}, {server.EditKind, "Files changed"}, {server.ReadKind, "Files read"},
	{server.ErrorKind, "Errors only"},
}

type found struct {
	page.Layout
	filter
	Kinds      []page.Choice
	Chips      []narrowChip
	Saved      saved
	Superseded bool
	Session    string
	Tool, File string
	Tools      []string // that are offered
	Projects   []chipProject
	Groups     []hitGroup
	Next       string
	More       bool // the search goes on there: it was to become too much work
	Asked      bool
	KindParams []string
	owner      int64 // of the session; 0: none is named
}

// hitGroup is what was found in one session.
type hitGroup struct {
	Title, URL string
	Session    server.Session
	Lines      int
	Few, More  []hit
}

type hit struct {
	server.Hit
	URL  string
	Same int // further lines with the same text
}

// commonTools are offered; any other can be typed.
var commonTools = []string{"Bash", "Edit", "Glob", "Grep", "Read", "Skill", "Task", "WebFetch", "WebSearch", "Write",
	"mcp__*"}

// search is GET /search?q&kind&tool&file&project&machine&user&model&since&until&superseded&session: lines that contain
// words, tool calls, or what touched a file.
func (v *Viewer) search(w http.ResponseWriter, r *http.Request, who server.Login) error {
	q := r.URL.Query()
	scope := server.ScopeOf(who.User)
	groups, err := groups(r.Context(), v.store, scope, q)
	if err != nil {
		return err
	}
	users, err := userChips(r.Context(), v.store, who, q, allUsers)
	if err != nil {
		return err
	}
	models, err := v.store.Usage(r.Context(), scope, server.UsageQuery{By: []string{"model"}})
	if err != nil {
		return err
	}
	p := found{Layout: v.Layout(r, who, "Search", "search"), filter: readFilter(q, v.Base, "/search", users),
		Superseded: q.Get("superseded") != "", Session: q.Get("session"),
		Tool: strings.TrimSpace(q.Get("tool")), File: strings.TrimSpace(q.Get("file")), Tools: commonTools,
		Projects: projects(groups, q, v.Base, "/")}
	p.Layout.Query, p.Asked = p.Text, p.Text+p.Tool+p.File != ""
	p.Offer(groups, models)
	if p.owner, err = v.ownerOf(r, who); err != nil {
		return err
	}
	v.searchChips(q, &p)
	if p.Saved, err = readSaved(r, v.store, who.User.ID, v.Base, server.SearchPage); err != nil {
		return err
	}
	if p.Asked {
		if err := v.find(r, scope, &p); err != nil {
			return err
		}
	}
	v.Render(w, http.StatusOK, "search.html", p)
	return nil
}

// searchChips are links that add or remove what the search is narrowed to. No kind is all of them.
func (v *Viewer) searchChips(q url.Values, p *found) {
	with := func(kinds []string) string {
		next := maps.Clone(q)
		next.Del("after")
		if next["kind"] = kinds; len(kinds) == 0 {
			next.Del("kind")
		}
		return v.Base + page.Address("/search", next)
	}
	for _, k := range searchKinds {
		on := slices.Contains(q["kind"], k.Kind)
		kinds := slices.DeleteFunc(slices.Clone(q["kind"]), func(s string) bool { return s == k.Kind || s == "" })
		if on {
			p.KindParams = append(p.KindParams, k.Kind)
		} else {
			kinds = append(kinds, k.Kind)
		}
		p.Kinds = append(p.Kinds, page.Choice{Name: k.Name, URL: with(kinds), On: on})
	}
	all := page.Choice{Name: "All", URL: with(nil), On: len(p.KindParams) == 0}
	p.Kinds = append([]page.Choice{all}, p.Kinds...)
	for _, c := range []narrowChip{{Name: "tool", Value: p.Tool}, {Name: "file", Value: p.File}} {
		if c.URL = v.Base + page.Address("/search", q, c.Name, "", "after", ""); c.Value != "" {
			p.Chips = append(p.Chips, c)
		}
	}
	p.Chips = append(p.Chips, p.filter.Chips(q, v.Base, "/search", p.Projects)...)
	if p.Session != "" {
		p.Chips = append(p.Chips, narrowChip{Name: "session", Value: p.Session,
			URL: v.Base + page.Address("/search", q, "session", "", "owner", "", "after", "")})
	}
	if p.Superseded {
		p.Chips = append(p.Chips, narrowChip{Name: "with", Value: "superseded lines",
			URL: v.Base + page.Address("/search", q, "superseded", "", "after", "")})
	}
}

func (v *Viewer) find(r *http.Request, scope server.Scope, p *found) error {
	q := r.URL.Query()
	f := p.filter.Query(v.Now(), page.Zone(r))
	sq := server.SearchQuery{Text: p.Text, Project: f.Project, Machine: f.Machine, User: f.User, Model: f.Model,
		Session: p.Session, Since: f.Since, Until: f.Until, Superseded: p.Superseded, After: q.Get("after"),
		Limit: searchPage, Kinds: p.KindParams, Tool: p.Tool, File: p.File}
	if p.owner != 0 {
		sq.User = p.owner
	}
	hits, err := v.store.Search(r.Context(), scope, sq)
	if errors.Is(err, server.ErrBadPage) {
		sq.After = ""
		hits, err = v.store.Search(r.Context(), scope, sq)
	}
	if err != nil {
		return err
	}
	p.Groups, p.More = v.grouped(hits.List), hits.More
	if hits.Next != "" {
		p.Next = v.Base + page.Address("/search", q, "after", hits.Next)
	}
	return nil
}

// grouped puts what was found in one session together, in the order of the newest line of each. Lines with the same
// text, as titles that are written again, are one.
func (v *Viewer) grouped(list []server.Hit) (out []hitGroup) {
	at := map[int64]int{}
	for _, h := range list {
		i, known := at[h.Session.ID]
		if !known {
			i = len(out)
			at[h.Session.ID] = i
			out = append(out, hitGroup{Session: h.Session, URL: v.Base + thread.StreamOf(h.Session).Path(""),
				Title: cmp.Or(h.Summary.Title, h.Summary.FirstPrompt, h.Session.SessionID)})
		}
		g := &out[i]
		g.Lines++
		if same := g.same(h); same != nil {
			same.Same++
			continue
		}
		s := thread.StreamOf(h.Session)
		if !h.Current {
			s.Epoch, s.Generation = h.Epoch, h.Generation
		}
		x := hit{Hit: h, URL: v.Base + s.LinePath(h.Line)}
		if len(g.Few) < fewHits {
			g.Few = append(g.Few, x)
		} else {
			g.More = append(g.More, x)
		}
	}
	return out
}

func (g *hitGroup) same(h server.Hit) *hit {
	for _, list := range [][]hit{g.Few, g.More} {
		for i := range list {
			if list[i].Kind == h.Kind && list[i].Snippet == h.Snippet && list[i].Current == h.Current {
				return &list[i]
			}
		}
	}
	return nil
}
