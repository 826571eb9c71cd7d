package screen

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/protocol"
)

// row is a session in the list, with what was found in it.
type row struct {
	library.Item
	group   string // the heading that it stands below; "" for results
	state   string // what it does now
	user    string // whose; "" where only the disk was asked
	parent  string // the session whose agent it is
	line    int64  // that was found; -1: none
	kind    string
	snippet []protocol.Piece
	address string // of the viewer
	spot    library.Spot
}

// page is the rows that answer a query.
type page struct {
	query string // that was asked
	rows  []row
	more  bool
	note  string // what should be known about the answer: a word that was not found, how it was read
	away  string // why the server did not answer: the rows are those on disk
}

// How much is asked for.
const (
	recentHere    = 30
	recentAll     = 60
	foundSessions = 50
	foundOnDisk   = 40
)

// patience is how long a server may take for a page, and pause how long it is then left alone.
const (
	patience = 5 * time.Second
	pause    = 5 * time.Second
)

// source asks the server, or reads the disk while that is away. Safe for concurrent use.
type source struct {
	Desk

	mu    sync.Mutex
	away  string    // why the server was away the last time
	until time.Time // when it is asked again
}

func (s *source) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// reachable reports whether to ask the server, and why not.
func (s *source) reachable() (why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.Library.Server == nil:
		return "no server is set"
	case s.now().Before(s.until):
		return s.away
	}
	return ""
}

// failed remembers that the server did not answer.
func (s *source) failed(err error) (why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away, s.until = err.Error(), s.now().Add(pause)
	return s.away
}

// page answers a query; an empty one with the sessions that ran last.
func (s *source) page(ctx context.Context, query string) (page, error) {
	why := s.reachable()
	if why == "" {
		asked, cancel := context.WithTimeout(ctx, patience)
		p, err := s.served(asked, query)
		cancel()
		if err == nil || ctx.Err() != nil {
			return p, ctx.Err()
		}
		if !remote.Is(err, control.CodeUnreachable) && !remote.Is(err, control.CodeRefusedKey) && asked.Err() == nil {
			return page{query: query, note: err.Error()}, nil
		}
		why = s.failed(err)
	}
	p := s.stored(ctx, query)
	p.away = why
	return p, ctx.Err()
}

func (s *source) served(ctx context.Context, query string) (page, error) {
	if text, project := split(query); text == "" {
		if p, err := s.recent(ctx, query, project); err != nil || len(p.rows) > 0 || project == "" {
			return p, err
		}
	}
	return find(ctx, s.Library.Server, query)
}

// stored answers from the disk.
func (s *source) stored(ctx context.Context, query string) page {
	p := page{query: query}
	text, project := split(query)
	if text == "" {
		for _, i := range s.Library.Recent(ctx, project, recentAll) {
			if i.Title != "" { // else nothing was said yet
				p.rows = append(p.rows, row{Item: i, line: -1, spot: library.Spot{Path: i.Path, Line: -1}})
			}
		}
		p.rows = s.arranged(p.rows, []string{s.Project})
		return p
	}
	for _, m := range s.Library.Grep(ctx, text, project, foundOnDisk) {
		p.rows = append(p.rows, row{Item: m.Item, line: m.Line, kind: m.Kind, snippet: m.Snippet,
			spot: library.Spot{Path: m.Path, Line: m.Line}})
	}
	p.more = len(p.rows) == foundOnDisk
	return p
}

// recent lists the sessions that ran last, and those of this folder's project.
func (s *source) recent(ctx context.Context, query, project string) (page, error) {
	var all, here []row
	var failed, failedHere error
	var wait sync.WaitGroup
	if s.Project != "" && project == "" {
		wait.Go(func() { here, failedHere = s.list(ctx, s.Project, recentHere) })
	}
	all, failed = s.list(ctx, project, recentAll)
	wait.Wait()
	if err := cmp.Or(failed, failedHere); err != nil {
		return page{}, err
	}
	for _, r := range here {
		if !slices.ContainsFunc(all, func(o row) bool { return o.Session == r.Session && o.Machine == r.Machine }) {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b row) int { return b.ChangedAt.Compare(a.ChangedAt) })
	called := []string{s.Project}
	for _, r := range here { // the server says the names of repositories
		called = append(called, r.Project)
	}
	return page{query: query, rows: s.arranged(all, called), more: len(all) >= recentAll}, nil
}

func (s *source) list(ctx context.Context, project string, limit int) (rows []row, err error) {
	q := remote.Query{Project: project, Recent: true}
	err = s.Library.Server.Sessions(ctx, q, limit, func(x *remote.Session) bool {
		if x.Path != "history.jsonl" && (x.Summary.Title != "" || x.Summary.FirstPrompt != "" || x.Summary.Messages > 0) {
			rows = append(rows, rowOf(s.Library.Server, x))
		}
		return len(rows) < limit
	})
	return rows, err
}

// Headings of the list without a query.
const (
	groupNow  = "Runs now"
	groupHere = "This folder"
	groupRest = "Elsewhere"
)

// fresh is how long after its last record a session of another machine counts as running.
const fresh = 90 * time.Second

// arranged groups the rows: what runs, what this folder's project has, by its names, the rest.
func (s *source) arranged(rows []row, called []string) []row {
	running := s.Library.Running()
	groups := map[string][]row{}
	for _, r := range rows {
		p, here := running[r.Session]
		switch {
		case here && p.Status == "idle":
			r.state, r.group = "waits for you", groupNow
		case here:
			r.state, r.group = "works", groupNow
		case r.Machine != s.Library.Machine && s.now().Sub(r.ChangedAt) < fresh:
			r.state, r.group = "works", groupNow
		case s.Project != "" && slices.Contains(called, r.Project):
			r.group = groupHere
		default:
			r.group = groupRest
		}
		groups[r.group] = append(groups[r.group], r)
	}
	return slices.Concat(groups[groupNow], groups[groupHere], groups[groupRest])
}
