package web

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/web/format"
	"github.com/ccship/ccship/server/web/page"
)

const listPage = 60

// home is the page of sessions.
type home struct {
	page.Layout
	filter
	Census   census
	Projects []projectRow
	Groups   []group
	First    string // address of the newest page; "" on it
	Next     string
	Empty    bool // nothing has arrived at all
}

// filter is the reader's choice for a listing, and the possible choices.
type filter struct {
	Text, Project, Machine, User, Model, Branch string
	Since, Until                                string // 2026-11-21
	Narrow                                      bool   // by something else than text
	Any                                         bool
	Machines                                    []choice
	Models                                      []string
	Users                                       []server.User
	Clear                                       string
}

// census counts what the reader may see.
type census struct {
	Projects, Sessions, Machines int64
	Bytes                        int64
	Tokens                       server.Tokens
	Cost                         derive.Cost
}

type projectRow struct {
	Key       string // project_hash
	Name, URL string
	Sessions  int64
	Last      time.Time
	On        bool
	cwd       string
}

// group is sessions of one project on one machine.
type group struct {
	Name, Where, Cwd string
	Sessions         []row
}

type row struct {
	server.FoundSession
	Tokens server.Tokens
	Cost   derive.Cost
	Title  string
	Prompt string // the first, when the title is another
	Live   bool
	Who    string
	// Dropped says that a rewrite took lines out of the file.
	Dropped bool
}

// list is GET /: sessions, most recently active first; those of a project on a machine are grouped.
func (v *Viewer) list(w http.ResponseWriter, r *http.Request, who server.Login) error {
	q := r.URL.Query()
	scope := server.ScopeOf(who.User)
	groups, err := v.store.Groups(r.Context(), scope)
	if err != nil {
		return err
	}
	p := home{Layout: v.Layout(r, who, "Sessions", "sessions")}
	users, err := v.users(r, who)
	if err != nil {
		return err
	}
	usage, err := v.store.Usage(r.Context(), scope, server.UsageQuery{By: []string{"model"}})
	if err != nil {
		return err
	}
	p.Census = v.census(groups, usage)
	p.filter = v.filterOf(q, groups, usage, users)
	p.Projects = v.projects(groups, q)
	p.Empty = len(groups) == 0
	find := p.filter.query(groups, users, zone(r))
	find.Page = server.Page{After: q.Get("after"), Limit: listPage, Recent: true}
	found, err := v.store.Find(r.Context(), scope, find)
	if errors.Is(err, server.ErrBadPage) {
		http.Redirect(w, r, v.Base+query("/", q, "after", ""), http.StatusSeeOther)
		return nil
	}
	if err != nil {
		return err
	}
	drops, err := v.store.Drops(r.Context(), scope, server.DropQuery{Limit: maxDrops})
	if err != nil {
		return err
	}
	p.Groups = v.group(found.List, users, drops)
	if find.After != "" {
		p.First = v.Base + query("/", q, "after", "")
	}
	if found.Next != "" {
		p.Next = v.Base + query("/", q, "after", found.Next)
	}
	v.Render(w, http.StatusOK, "list.html", p)
	return nil
}

// users lists the users an owner may filter by. It is empty for others, and when there is only one user.
func (v *Viewer) users(r *http.Request, who server.Login) ([]server.User, error) {
	if who.User.Role != server.Owner {
		return nil, nil
	}
	users, err := v.store.Users(r.Context())
	if err != nil || len(users) < 2 {
		return nil, err
	}
	return users, nil
}

func (v *Viewer) census(groups []server.Group, usage []server.UsageRow) census {
	var c census
	projects, machines := map[string]bool{}, map[string]bool{}
	for _, g := range groups {
		c.Sessions += g.Sessions
		c.Bytes += g.Bytes
		projects[g.ProjectHash], machines[g.Machine] = true, true
	}
	c.Projects, c.Machines = int64(len(projects)), int64(len(machines))
	c.Tokens, c.Cost = v.sum(usage)
	return c
}

// filterOf reads the filter and its possible values.
func (v *Viewer) filterOf(q url.Values, groups []server.Group, usage []server.UsageRow, users []server.User) filter {
	f := filter{Text: q.Get("q"), Project: q.Get("project"), Machine: q.Get("machine"), User: q.Get("user"),
		Model: q.Get("model"), Branch: q.Get("branch"), Since: q.Get("since"), Until: q.Get("until"), Users: users}
	f.Narrow = f.Machine+f.User+f.Model+f.Branch+f.Since+f.Until != ""
	f.Any = f.Narrow || f.Text != ""
	f.Clear = v.Base + query("/", url.Values{}, "project", f.Project)
	seen := map[string]bool{}
	for _, g := range groups {
		if !seen[g.Machine] {
			seen[g.Machine] = true
			f.Machines = append(f.Machines, choice{Name: cmp.Or(g.Host, g.Machine, "(a plain client)"),
				URL: machineParam(g.Machine), On: f.Machine == machineParam(g.Machine)})
		}
	}
	for _, u := range usage {
		if u.Model != "" {
			f.Models = append(f.Models, u.Model)
		}
	}
	slices.Sort(f.Models)
	return f
}

// machineParam is a machine in an address, where "" means any of them.
func machineParam(m string) string {
	if m == "" {
		return "-"
	}
	return m
}

// query is the filter for the store. Invalid values are ignored.
func (f filter) query(groups []server.Group, users []server.User, east time.Duration) server.SessionQuery {
	q := server.SessionQuery{Text: f.Text, Project: f.Project, Model: f.Model, Branch: f.Branch}
	if f.Machine != "" {
		for _, g := range groups {
			if machineParam(g.Machine) == f.Machine {
				m := g.Machine
				q.Machine = &m
			}
		}
	}
	for _, u := range users {
		if u.Name == f.User {
			q.User = u.ID
		}
	}
	q.Since, q.Until = dates(f.Since, f.Until, east)
	return q
}

// dates reads days, in the reader's zone: from the beginning of the first to the end of the last.
func dates(since, until string, east time.Duration) (from, to time.Time) {
	if t, err := time.Parse(time.DateOnly, since); err == nil {
		from = t.Add(-east)
	}
	if t, err := time.Parse(time.DateOnly, until); err == nil {
		to = t.AddDate(0, 0, 1).Add(-east)
	}
	return from, to
}

// projects lists every project once, most recently active first.
func (v *Viewer) projects(groups []server.Group, q url.Values) []projectRow {
	at := map[string]int{}
	var out []projectRow
	for _, g := range groups {
		i, known := at[g.ProjectHash]
		if !known {
			i = len(out)
			at[g.ProjectHash] = i
			out = append(out, projectRow{Key: g.ProjectHash, Name: projectName(g.Project, g.Cwd, g.ProjectHash),
				On: q.Get("project") == g.ProjectHash, URL: v.Base + query("/", q, "project", g.ProjectHash, "after", "")})
		}
		out[i].Sessions += g.Sessions
		if g.Last.After(out[i].Last) {
			out[i].Last = g.Last
		}
		out[i].cwd = g.Cwd
	}
	return apart(out)
}

// apart distinguishes projects of one name by their parent directory.
func apart(list []projectRow) []projectRow {
	names := map[string]int{}
	for _, p := range list {
		names[p.Name]++
	}
	for i, p := range list {
		if dir := path.Base(path.Dir(strings.ReplaceAll(p.cwd, `\`, "/"))); names[p.Name] > 1 && len(dir) > 1 {
			list[i].Name = dir + "/" + p.Name
		}
	}
	return list
}

func projectName(name, cwd, hash string) string {
	return cmp.Or(name, cwd, format.Short(hash, 12), "(no project)")
}

// group puts sessions of one project on one machine together, in the order of the newest of each.
func (v *Viewer) group(list []server.FoundSession, users []server.User, drops []server.Drop) []group {
	type key struct{ project, machine string }
	names := map[int64]string{}
	for _, u := range users {
		names[u.ID] = u.Name
	}
	dropped := map[int64]bool{}
	for _, d := range drops {
		dropped[d.Session.ID] = true
	}
	at := map[key]int{}
	var out []group
	for _, x := range list {
		k := key{x.ProjectHash, x.Machine}
		i, known := at[k]
		if !known {
			i = len(out)
			at[k] = i
			out = append(out, group{Name: projectName(x.Project, x.Cwd, x.ProjectHash),
				Where: cmp.Or(x.Host, x.Machine, "a plain client"), Cwd: x.Cwd})
		}
		s := row{FoundSession: x, Title: cmp.Or(x.Summary.Title, x.Summary.FirstPrompt), Live: v.isLive(x.Active),
			Who: names[x.Owner], Dropped: dropped[x.ID]}
		s.Tokens, s.Cost = v.sum(x.Usage)
		if x.Summary.Title != "" && x.Summary.Title != x.Summary.FirstPrompt {
			s.Prompt = x.Summary.FirstPrompt
		}
		out[i].Sessions = append(out[i].Sessions, s)
	}
	return out
}
