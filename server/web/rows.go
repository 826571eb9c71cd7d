package web

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"

	"github.com/ccship/ccship/transcript"
)

// maxUsageDrops is up to how many rewrites a page counts.
const maxUsageDrops = 200

// group is sessions of one day, or of one project.
type group struct {
	Name, Where string
	Sessions    []row
}

type row struct {
	server.FoundSession
	Tokens   server.Tokens
	Cost     transcript.Cost
	Title    string
	Prompt   string // the first, when the title is another
	Live     bool
	Who      string
	Where    string // machine
	Name     string // of the project
	Worktree string
	Dropped  bool // a rewrite took lines out of the file
	Mark     server.Mark
	Day      bool   // the row stands under a day, so it says its project
	Came     string // of it: how the session ended, or stands
}

// rows are those of sessions. projects and names are theirs and their users', as far as rows say so.
func (p *homePages) rows(list []server.FoundSession, projects *derive.Projects, names map[int64]string,
	dropped map[int64]bool) []row {
	var out []row
	for _, x := range list {
		s := row{FoundSession: x, Title: x.Summary.Name(), Who: names[x.Owner],
			Live: p.now().Sub(x.Active) < liveFor, Dropped: dropped[x.ID], Where: machineName(x.Session)}
		s.Name = projects.Of(&x.Session)
		if _, s.Worktree = derive.Worktree(x.Cwd); s.Worktree != "" && x.Summary.Branch == "worktree-"+s.Worktree {
			s.Summary.Branch = "" // it says the same
		}
		s.Tokens, s.Cost = sumUsage(p.Prices, x.Usage)
		if x.Summary.Title != "" && x.Summary.Title != x.Summary.FirstPrompt {
			s.Prompt = x.Summary.FirstPrompt
		}
		out = append(out, s)
	}
	return out
}

// who names the users of sessions, where there are several.
func (p *homePages) who(ctx context.Context, l *list, found []server.FoundSession) (map[int64]string, error) {
	if len(l.Users) == 0 {
		return nil, nil //nolint:nilnil // no names
	}
	var ids []int64
	for i := range found {
		ids = append(ids, found[i].Owner)
	}
	return p.store.UserNames(ctx, ids)
}

func machineName(x server.Session) string { return cmp.Or(x.Host, x.Machine, "a plain client") }

// byDay puts sessions of one day together, in the reader's zone.
func byDay(rows []row, now time.Time, east time.Duration) []group {
	var out []group
	today := now.UTC().Add(east)
	for _, s := range rows {
		s.Day = true
		name := dayName(s.Active.UTC().Add(east), today)
		if n := len(out); n == 0 || out[n-1].Name != name {
			out = append(out, group{Name: name})
		}
		at := &out[len(out)-1]
		at.Sessions = append(at.Sessions, s)
	}
	return out
}

// dayName is a day as people say it. Both times are of the reader's zone.
func dayName(day, today time.Time) string {
	const date = time.DateOnly
	switch day.Format(date) {
	case today.Format(date):
		return "Today"
	case today.AddDate(0, 0, -1).Format(date):
		return "Yesterday"
	}
	if day.Year() == today.Year() {
		return day.Format("Monday 2 January")
	}
	return day.Format("Monday 2 January 2006")
}

// byProject puts sessions of one project together, in the order of the newest of each. A worktree belongs to its
// repository.
func byProject(rows []row) []group {
	at := map[string]int{}
	var out []group
	for _, s := range rows {
		key := rowProject(s, rows)
		i, known := at[key]
		if !known {
			i = len(out)
			at[key] = i
			folder, _ := derive.Worktree(s.Cwd)
			out = append(out, group{Name: s.Name, Where: folder})
		}
		// The folder that has the project's name is the repository, others are worktrees of it.
		if folder, _ := derive.Worktree(s.Cwd); named(folder, s.Name) && !named(out[i].Where, s.Name) {
			out[i].Where = folder
		}
		out[i].Sessions = append(out[i].Sessions, s)
	}
	return out
}

// named reports whether a folder has a name.
func named(folder, name string) bool {
	return folder[strings.LastIndexAny(folder, `/\`)+1:] == name
}

// rowProject is the repository of a session, or for one in a worktree whose machine did not find it that of the folder
// above, or of the first worktree there.
func rowProject(s row, rows []row) string {
	folder, worktree := derive.Worktree(s.Cwd)
	if worktree == "" {
		return s.Repository
	}
	sameFolder := func(o row) bool { f, _ := derive.Worktree(o.Cwd); return o.Machine == s.Machine && f == folder }
	i := slices.IndexFunc(rows, func(o row) bool { return o.Cwd == folder && sameFolder(o) })
	if i < 0 {
		i = slices.IndexFunc(rows, sameFolder)
	}
	return rows[i].Repository
}
