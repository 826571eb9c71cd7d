package derive

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// MostProjects is how many groups projects are named from: those that were heard last.
const MostProjects = 200

// Project is a repository with its clones and worktrees, or a folder without one.
type Project struct {
	Key      string // what the store knows it by: its Session.Repository, or what several that are one are called
	Name     string
	Sessions int64
	Last     time.Time
}

// Projects are a reader's projects, each by one name, most recently active first. Of nil none is known.
type Projects struct {
	List  []Project
	at    map[string]int    // by projectID
	names map[string]string // the same of a repository's worktrees, though the store may know each as a project
}

// ReadProjects names the projects that a scope sees.
func ReadProjects(ctx context.Context, st server.SessionFinder, scope server.Scope) (*Projects, error) {
	page, err := st.Groups(ctx, scope, server.GroupQuery{Limit: MostProjects})
	return ProjectsOf(page.List), err
}

// ProjectsOf names every project of some groups. What has one name on several machines is one project, unless these
// are known to be of several repositories; two of one name on one machine are two.
func ProjectsOf(groups []server.Group) *Projects {
	names, places := projectNames(groups)
	p, by, keys := &Projects{at: map[string]int{}, names: names}, map[string]int{}, projectKeys(groups)
	for _, g := range groups {
		id := projectID(g)
		key := keys[id]
		i, known := by[key]
		if !known {
			i = len(p.List)
			by[key] = i
			name := names[id]
			if _, worktree := Worktree(g.Cwd); worktree != "" && places[id] > 1 {
				name += " (" + worktree + ")"
			}
			if key != id && key == projectName(key, g.Cwd, "") {
				name = key
			}
			p.List = append(p.List, Project{Key: key, Name: name})
		}
		p.at[id] = i
		x := &p.List[i]
		x.Sessions += g.Sessions
		if g.Last.After(x.Last) {
			x.Last = g.Last
		}
	}
	return p
}

// Name returns what the project with a Session.Repository is called; "" for one that is not known.
func (p *Projects) Name(repository string) string {
	if p == nil {
		return ""
	}
	if i, known := p.at[repository]; known {
		return p.List[i].Name
	}
	return ""
}

// Of returns what the project of a session is called.
func (p *Projects) Of(x *server.Session) string {
	name := ""
	if p != nil {
		name = p.names[x.Repository]
	}
	return cmp.Or(name, projectName(x.Project, x.Cwd, x.ProjectHash))
}

// Key returns what the store knows a project by that is called so, or the name itself.
func (p *Projects) Key(name string) string {
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for _, x := range p.List {
			if same(x.Name, name) {
				return x.Key
			}
		}
	}
	return name
}

// Ask has a search choose projects by their names.
func (p *Projects) Ask(a server.RankQuery) server.RankQuery {
	a.Query.Only = maps.Clone(a.Query.Only)
	for i, name := range a.Query.Only["project"] {
		if i == 0 {
			a.Query.Only["project"] = slices.Clone(a.Query.Only["project"])
		}
		a.Query.Only["project"][i] = p.Key(name)
	}
	return a
}

// Counts returns how many sessions each of some projects has, by their names.
func (p *Projects) Counts(list []protocol.Count) (out []protocol.Count) {
	for _, c := range list {
		name := cmp.Or(p.Name(c.Value), projectName(c.Name, "", c.Value))
		i := slices.IndexFunc(out, func(o protocol.Count) bool { return o.Value == name })
		if i < 0 {
			i = len(out)
			out = append(out, protocol.Count{Value: name})
		}
		out[i].Count += c.Count
	}
	slices.SortStableFunc(out, func(a, b protocol.Count) int { return cmp.Compare(b.Count, a.Count) })
	return out
}

// projectID returns what all groups of a project have in common: its repository, or where nothing is known of one its
// hash.
func projectID(g server.Group) string { return cmp.Or(g.Repository, g.ProjectHash) }

// projectKeys returns what the store knows projects by, by their ids. Only what has one name on several machines, and
// is not known to be of one repository, is known by that name.
func projectKeys(groups []server.Group) map[string]string {
	type place struct {
		name, machine string
		owner         int64
	}
	there, several, repositories := map[place]string{}, map[string]bool{}, map[string]string{}
	called := map[string]map[string]bool{} // ids by name
	for _, g := range groups {
		p, id, one := place{g.Project, g.Machine, g.Owner}, projectID(g), repositories[g.Project]
		if other, known := there[p]; known && other != id || g.Repository != "" && one != "" && one != g.Repository {
			several[g.Project] = true
		}
		there[p], repositories[g.Project] = id, cmp.Or(g.Repository, one)
		if called[g.Project] == nil {
			called[g.Project] = map[string]bool{}
		}
		called[g.Project][id] = true
	}
	keys := map[string]string{}
	for _, g := range groups {
		id, key := projectID(g), g.Project
		if id != "" && (key == "" || several[key] || len(called[key]) == 1) {
			key = id
		}
		if other, known := keys[id]; known && other != key { // it has several names
			key = id
		}
		keys[id] = key
	}
	return keys
}

// projectNames returns what projects are called, by their ids: where several have one name, as much of the folders
// above it as distinguishes them, and where that is the same too, the id. The name is that of the folder that holds its
// others. Worktrees whose repository is not known are called as it; shared is how many projects are in the folder of
// one.
func projectNames(groups []server.Group) (names map[string]string, shared map[string]int) {
	names, folders := map[string]string{}, map[string]string{} // a project without a folder left has its id in its name
	at, in, ids := map[string]string{}, map[string]string{}, map[string][]string{}
	for _, g := range groups {
		id, cwd := projectID(g), slashed(g.Cwd)
		if below, known := at[id]; !known || cwd != "" && strings.HasPrefix(below, cwd+"/") {
			names[id], at[id] = projectName(g.Project, g.Cwd, id), cwd
			folders[id], in[id] = around(g.Cwd, names[id]), id
			if g.Repository == "" && cwd != "" {
				in[id] = fmt.Sprint(g.Owner, " ", g.Machine, " ", folders[id], "/", names[id])
			}
		}
	}
	for id, folder := range in {
		ids[folder] = append(ids[folder], id)
	}
	shared = map[string]int{}
	for id, folder := range in {
		shared[id] = len(ids[folder])
	}
	distinguish(names, folders, in)
	return names, shared
}

// around returns the folder around the one that a project is called after, which a working directory is in.
func around(cwd, name string) string {
	folder, _ := Worktree(cwd)
	folder = path.Clean(slashed(folder))
	for top := folder; top != path.Dir(top); top = path.Dir(top) {
		if path.Base(top) == name {
			return path.Dir(top)
		}
	}
	return path.Dir(folder)
}

// distinguish puts folders in front of names that projects in different folders have, until they differ or no folder
// is left.
func distinguish(names, folders, in map[string]string) {
	for again := true; again; {
		again = false
		alike := map[string]map[string]bool{}
		for id, name := range names {
			if alike[name] == nil {
				alike[name] = map[string]bool{}
			}
			alike[name][in[id]] = true
		}
		for id, name := range names {
			if len(alike[name]) == 1 || folders[id] == "" {
				continue
			}
			again = true
			dir, above := path.Base(folders[id]), path.Dir(folders[id])
			if above == folders[id] || dir == "/" {
				names[id], folders[id] = name+" ("+short(id)+")", ""
				continue
			}
			names[id], folders[id] = dir+"/"+name, above
		}
	}
}

// projectName returns what a project is called, whatever of it is known. A worktree whose repository its machine did
// not find is called by that all the same.
func projectName(name, cwd, hash string) string {
	folder, worktree := Worktree(cwd)
	if worktree != "" && name == worktree {
		name = transcript.FolderName(folder)
	}
	return cmp.Or(name, folder, short(hash), "(no project)")
}

// worktrees are where Claude Code, and by habit people, put a repository's worktrees, below it.
var worktrees = []string{"/.claude/worktrees/", "/.worktrees/"}

// Worktree returns the folder that a working directory belongs to, and the name of its worktree there; "" when its path
// tells of none.
func Worktree(cwd string) (folder, worktree string) {
	for _, place := range worktrees {
		if at := strings.Index(slashed(cwd), place); at >= 0 {
			worktree, _, _ = strings.Cut(slashed(cwd)[at+len(place):], "/")
			return cwd[:at], worktree
		}
	}
	return cwd, ""
}

func slashed(s string) string { return strings.ReplaceAll(s, `\`, "/") }

// short returns the beginning of a hash.
func short(hash string) string {
	if len(hash) <= 12 {
		return hash
	}
	return hash[:11] + "…"
}
