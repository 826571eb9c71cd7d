package web

import (
	"cmp"
	"context"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/transcript"
)

// chipProject is a project that a listing can be narrowed to.
type chipProject struct {
	Key       string // what the store knows it by: its name, or where several have that, its project_hash
	Name, URL string
	Sessions  int64
	Last      time.Time
	On        bool
}

// shown is how many groups a page lists or offers: those that were heard last.
const shown = 200

// groups are what a page offers to choose from, and what its query has chosen.
func groups(ctx context.Context, st server.SessionFinder, scope server.Scope, q url.Values) ([]server.Group, error) {
	page, err := st.Groups(ctx, scope, server.GroupQuery{Limit: shown})
	chosen := q.Get("project")
	if err != nil || page.Next == "" || chosen == "" || slices.ContainsFunc(page.List, func(g server.Group) bool {
		return projectID(g) == chosen
	}) {
		return page.List, err
	}
	more, err := st.Groups(ctx, scope, server.GroupQuery{Project: chosen, Limit: shown})
	return append(page.List, more.List...), err
}

// projects lists every project once, most recently active first, with addresses of the page at base and path. What has
// one name on several machines is one project, unless these are known to be of several repositories; two of one name on
// one machine are two.
func projects(groups []server.Group, q url.Values, base, path string) []chipProject {
	at, names, keys := map[string]int{}, chipNames(groups), projectKeys(groups)
	var out []chipProject
	for _, g := range groups {
		id := projectID(g)
		key := keys[id]
		i, known := at[key]
		if !known {
			i = len(out)
			at[key] = i
			name := names[id]
			if key == g.Project && key == projectName(key, g.Cwd, "") {
				name = key
			}
			out = append(out, chipProject{Key: key, Name: name, On: q.Get("project") == name,
				URL: base + page.Address(path, q, "project", name, "after", "")})
		}
		out[i].Sessions += g.Sessions
		if g.Last.After(out[i].Last) {
			out[i].Last = g.Last
		}
	}
	return out
}

// projectID is what all groups of a project have in common: its repository, or where nothing is known of one its hash.
func projectID(g server.Group) string { return cmp.Or(g.Repository, g.ProjectHash) }

// projectKeys are what the store knows projects by, by their ids.
func projectKeys(groups []server.Group) map[string]string {
	type place struct {
		name, machine string
		owner         int64
	}
	there, several, repositories := map[place]string{}, map[string]bool{}, map[string]string{}
	for _, g := range groups {
		p, id, one := place{g.Project, g.Machine, g.Owner}, projectID(g), repositories[g.Project]
		if other, known := there[p]; known && other != id || g.Repository != "" && one != "" && one != g.Repository {
			several[g.Project] = true
		}
		there[p], repositories[g.Project] = id, cmp.Or(g.Repository, one)
	}
	keys := map[string]string{}
	for _, g := range groups {
		id, key := projectID(g), g.Project
		if key == "" || several[key] {
			key = id
		}
		if other, known := keys[id]; known && other != key { // it has several names
			key = id
		}
		keys[id] = key
	}
	return keys
}

// projectKey is what the store knows a project by whose name an address has.
func projectKey(ctx context.Context, st server.SessionFinder, scope server.Scope, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	list, err := st.Groups(ctx, scope, server.GroupQuery{Limit: shown})
	for _, p := range projects(list.List, nil, "", "/") {
		if p.Name == name {
			return p.Key, err
		}
	}
	return name, err
}

// chipNames are what projects are called, by their ids: where several have one name, as much of the folders above it as
// distinguishes them, and where that is the same too, the id. The name is that of the folder that holds its others.
func chipNames(groups []server.Group) map[string]string {
	names, folders := map[string]string{}, map[string]string{} // a project without a folder left has its id in its name
	at := map[string]string{}
	for _, g := range groups {
		id, cwd := projectID(g), slashed(g.Cwd)
		if below, known := at[id]; !known || cwd != "" && strings.HasPrefix(below, cwd+"/") {
			names[id], at[id] = projectName(g.Project, g.Cwd, id), cwd
			folder, _ := repository(g.Cwd)
			folders[id] = path.Dir(slashed(folder))
		}
	}
	for again := true; again; {
		again = false
		alike := map[string]int{}
		for _, name := range names {
			alike[name]++
		}
		for hash, name := range names {
			if alike[name] == 1 || folders[hash] == "" {
				continue
			}
			again = true
			dir, above := path.Base(folders[hash]), path.Dir(folders[hash])
			if above == folders[hash] || len(dir) < 2 {
				names[hash], folders[hash] = name+" ("+page.Short(hash, 12)+")", ""
				continue
			}
			names[hash], folders[hash] = dir+"/"+name, above
		}
	}
	return names
}

// projectName is what a project is called, whatever of it is known. A worktree whose repository its machine did not
// find is called by that all the same.
func projectName(name, cwd, hash string) string {
	folder, worktree := repository(cwd)
	if worktree != "" && name == worktree {
		name = transcript.FolderName(folder)
	}
	return cmp.Or(name, folder, page.Short(hash, 12), "(no project)")
}

// worktrees are where Claude Code, and by habit people, put a repository's worktrees, below it.
var worktrees = []string{"/.claude/worktrees/", "/.worktrees/"}

// repository is the folder that a working directory belongs to, and the name of its worktree there; "" when its path
// tells of none.
func repository(cwd string) (folder, worktree string) {
	for _, place := range worktrees {
		if at := strings.Index(slashed(cwd), place); at >= 0 {
			worktree, _, _ = strings.Cut(slashed(cwd)[at+len(place):], "/")
			return cwd[:at], worktree
		}
	}
	return cwd, ""
}

func slashed(s string) string { return strings.ReplaceAll(s, `\`, "/") }
