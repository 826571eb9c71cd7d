package daemon

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// largestShown is how many projects a census names.
const largestShown = 10

// Sessions lists the main transcripts on disk and counts all of them. It asks the tailer and the state, and reads no
// transcript.
func (d *Daemon) Sessions(ctx context.Context, q control.SessionsQuery) (control.Sessions, error) {
	facts, err := d.db.Files.Routings(ctx)
	if err != nil {
		return control.Sessions{}, err
	}
	l := collection{
		facts: facts, projects: map[string]*control.ProjectTotal{}, agents: map[string]int{}, names: map[string]tail.Kind{},
	}
	l.add(d.tailer.Present())
	defer d.memoryUsed.Store(true)
	a := control.Sessions{SchemaVersion: control.SchemaVersion, Census: l.census(), Sessions: []control.Session{}}
	chosen := l.choose(q.Project)
	a.Matching = len(chosen)
	from := min(q.Offset, len(chosen))
	to := min(from+q.Limit, len(chosen))
	excluded := d.router.ExcludedOnDisk(d.tailer)
	for _, t := range chosen[from:to] {
		s := l.session(t)
		if s.Waiting = d.db.Outbox.QueuedEntries(t.File.ID); s.Excluded == "" {
			s.Excluded = excluded[t.File.ID]
		}
		f := facts[t.File.ID]
		s.Acknowledged = max(0, s.Lines-s.Waiting-f.Excluded-f.Withheld)
		a.Sessions = append(a.Sessions, s)
	}
	if to < len(chosen) {
		a.Next = to
	}
	return a, nil
}

// collection is every transcript on disk, the newest first.
type collection struct {
	facts    map[tail.FileID]state.Routing
	mains    []tail.Tracked
	total    int64
	names    map[string]tail.Kind             // of sessions and agents, in how many folders their files may lie
	projects map[string]*control.ProjectTotal // by Claude Code's project folder
	agents   map[string]int                   // by folder and session
}

// add counts transcripts. A session of several folders is of the project where its newest file lies.
func (l *collection) add(all []tail.Tracked) {
	slices.SortFunc(all, func(a, b tail.Tracked) int {
		return cmp.Or(cmp.Compare(b.File.Stat.ModTime, a.File.Stat.ModTime), cmp.Compare(a.File.Path, b.File.Path))
	})
	for _, t := range all {
		l.total += t.File.Stat.Size
		if t.File.Kind == tail.History {
			continue
		}
		folder := t.File.ProjectFolder()
		p := l.projects[folder]
		if p == nil {
			p = &control.ProjectTotal{Project: filepath.Base(folder)}
			l.projects[folder] = p
		}
		p.Bytes += t.File.Stat.Size
		f := l.facts[t.File.ID]
		name := transcript.WithoutCopy(cmp.Or(f.Stream.SessionID, t.File.Name))
		_, copied := l.names[name]
		l.names[name] = t.File.Kind
		if t.File.Kind == tail.Agent {
			parent := f.Stream.Parent
			if parent == "" {
				parent, _, _ = strings.Cut(t.File.Name, "/")
			}
			l.agents[folder+"\x00"+parent]++
			continue
		}
		if !copied {
			p.Sessions++
		}
		if p.Cwd == "" && f.Stream.Cwd != "" {
			p.Project, p.Cwd = f.Stream.Project, f.Stream.Cwd
		}
		l.mains = append(l.mains, t)
	}
}

func (l *collection) census() control.Census {
	c := control.Census{Bytes: l.total}
	for _, kind := range l.names {
		if kind == tail.Agent {
			c.Agents++
		} else {
			c.Sessions++
		}
	}
	// A project is of one working directory, whatever its folders are called.
	for _, folder := range slices.Sorted(maps.Keys(l.projects)) {
		p := l.projects[folder]
		same := func(o control.ProjectTotal) bool { return o.Cwd != "" && o.Cwd == p.Cwd }
		if i := slices.IndexFunc(c.Largest, same); i >= 0 {
			c.Largest[i].Sessions += p.Sessions
			c.Largest[i].Bytes += p.Bytes
			continue
		}
		c.Largest = append(c.Largest, *p)
	}
	c.Projects = len(c.Largest)
	slices.SortFunc(c.Largest, func(a, b control.ProjectTotal) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Cwd, b.Cwd), cmp.Compare(a.Project, b.Project))
	})
	c.Largest = c.Largest[:min(len(c.Largest), largestShown)]
	return c
}

// choose selects the sessions of a project, by its name or by a folder in or below which they were started.
func (l *collection) choose(project string) []tail.Tracked {
	if project == "" {
		return l.mains
	}
	var chosen []tail.Tracked
	for _, t := range l.mains {
		stream := l.facts[t.File.ID].Stream
		below := filepath.IsAbs(project) && stream.Cwd != "" && sys.Within(project, stream.Cwd)
		if below || project == stream.Project || project == filepath.Base(t.File.ProjectFolder()) {
			chosen = append(chosen, t)
		}
	}
	return chosen
}

func (l *collection) session(t tail.Tracked) control.Session {
	f := l.facts[t.File.ID]
	s := control.Session{
		Session: f.Stream.SessionID, Project: f.Stream.Project, Cwd: f.Stream.Cwd, Path: t.File.Path,
		Bytes: t.File.Stat.Size, ReadBytes: t.Cursor.Offset, Lines: t.Cursor.Line, Generation: t.Cursor.Generation,
		ChangedAt: time.Unix(0, t.File.Stat.ModTime).UTC(), Agents: l.agents[t.File.ProjectFolder()+"\x00"+t.File.Name],
	}
	s.Server = project.ServerURL(f.Dest)
	if !f.Decided {
		s.Session, s.Project = t.File.Name, filepath.Base(t.File.ProjectFolder())
	}
	return s
}
