// Package route decides for every transcript which stream it is, and where its lines go or why they stay on this
// machine. The name of a file's stream, its working directory and its project are decided once and never change. The
// package does not know how lines are packed or sent.
package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// Destinations are the servers. Both methods are called during the delivery of a chunk, and must return at once.
type Destinations interface {
	// SpeaksExtension reports whether a server is known to speak the extension of the protocol.
	SpeaksExtension(dest string) bool
	// Open makes sure that rows queued for a destination are sent. An error means that its URL is invalid.
	Open(dest string) error
}

// Config is what a Router works with.
type Config struct {
	State        *state.DB
	Projects     *project.Finder
	Destinations Destinations
	Machine      string // name of this machine, part of the names of prompt histories
	Rules        Rules
}

// Router decides where lines go. It is safe for concurrent use with different files.
type Router struct {
	Tombstones *Tombstones    // sessions that were forgotten; immutable pointer
	History    *HistoryFilter // lines of prompt histories that stay here; immutable pointer
	Remembered Remembered     // set before the first chunk; nil: every file is remembered

	db           *state.DB
	projects     *project.Finder
	destinations Destinations
	machine      string
	rules        atomic.Pointer[Rules]

	streams streams
	folders folders
	places  places

	repositories *repositories // immutable pointer
	advice       adviceByProject
	exclusions   exclusions
	leftOut      *state.Persisted[leftOut]
	retyped      bool // leftOut cannot be read: counts as a change of types

	mu      sync.Mutex
	waiting map[tail.FileID]time.Time // since when a file waits for its working directory or repository; guarded by mu
}

// New returns a Router that knows every file in the state. Call Reroute before the first chunk.
func New(ctx context.Context, c Config) (*Router, error) {
	r := &Router{
		db: c.State, projects: c.Projects, destinations: c.Destinations, machine: c.Machine,
		waiting: map[tail.FileID]time.Time{},
	}
	r.SetRules(c.Rules)
	r.repositories = &repositories{known: map[string]*repository{}}
	var err error
	r.repositories.kept, err = state.LoadPersisted[keptRepositories](ctx, c.State, "repositories")
	if err != nil && !errors.Is(err, state.ErrUnreadable) { // if unreadable, a renamed one is another from then on
		return nil, fmt.Errorf("load repositories: %w", err)
	}
	facts, err := r.db.Files.Routings(ctx)
	if err != nil {
		return nil, fmt.Errorf("load streams: %w", err)
	}
	for id, f := range facts {
		if f.Decided {
			r.streams.add(f.Stream.SessionID, id)
			r.places.load(&f.Stream)
		}
		if folder, _, _ := strings.Cut(f.Stream.Path, "/"); f.Stream.Cwd != "" {
			r.folders.add(folder, f.Stream.Cwd)
		}
	}
	if r.Tombstones, err = loadTombstones(ctx, r.db); err != nil {
		return nil, err
	}
	if r.History, err = loadHistoryFilter(ctx, r.db, r.Tombstones, r.projects, facts); err != nil {
		return nil, err
	}
	return r, r.loadLeftOut(ctx)
}

// StreamID returns the file that has a stream's name.
func (r *Router) StreamID(name string) (tail.FileID, bool) { return r.streams.id(name) }

// Forgotten reports whether a stream is of a session that was forgotten.
func (r *Router) Forgotten(stream string) bool { return r.Tombstones.has(stream) }

// AnyServer reports whether any lines can be delivered.
func (r *Router) AnyServer() bool {
	rules := r.rules.Load()
	return rules.OwnServer != "" || len(rules.TrustedProjects) > 0
}

// Advice returns what a person should know about projects, without duplicates, in a stable order.
func (r *Router) Advice() []control.Advice { return r.advice.list() }

// WhyExcluded returns why nothing in a folder may be sent; "" when it may.
func (r *Router) WhyExcluded(dir string) string {
	policy, err := r.projects.Find(dir)
	switch {
	case err != nil:
		return withheldWhy(err)
	case policy.Enabled:
		return ""
	}
	return cmp.Or(policy.Why, "opted out")
}

// A working directory that is gone says nothing any more: a work tree that was removed would be a project of its own.
// Transcripts that were identified while it was there still say what it was.

// places are the projects of working directories, of those that said more than their own path. Safe for concurrent use.
type places struct {
	mu  sync.Mutex
	cwd map[string]place // guarded by mu
}

// place is the project of a working directory, as the newest of its streams has it.
type place struct {
	stream                    uint64
	hash, project, repository string
}

// load adds what a stream of an earlier run was identified as.
func (p *places) load(s *outbox.Stream) {
	if known, ok := p.find(s.Cwd); !ok || s.ID > known.stream {
		p.set(s)
	}
}

// set keeps what a working directory that is there says.
func (p *places) set(s *outbox.Stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cwd == nil {
		p.cwd = map[string]place{}
	}
	if s.Cwd == "" || s.Repository == "" && s.ProjectHash == project.Hash(s.Cwd, "", project.Policy{}, nil) {
		delete(p.cwd, s.Cwd)
		return
	}
	p.cwd[s.Cwd] = place{s.ID, s.ProjectHash, s.Project, s.Repository}
}

func (p *places) find(cwd string) (place, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.cwd[cwd]
	return at, ok
}

// maxAdvice is the largest number of working directories with advice.
const maxAdvice = 100

// adviceByProject is what a person should know of projects, and what to do about it. It is safe for concurrent use.
type adviceByProject struct {
	mu    sync.Mutex
	byCwd map[string]control.Advice // by a working directory in the project; guarded by mu
}

// set replaces the advice about a working directory's project; an empty text removes it.
func (a *adviceByProject) set(cwd, text, hint string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if text == "" {
		delete(a.byCwd, cwd)
		return
	}
	if _, known := a.byCwd[cwd]; !known && len(a.byCwd) >= maxAdvice {
		return
	}
	if a.byCwd == nil {
		a.byCwd = map[string]control.Advice{}
	}
	a.byCwd[cwd] = control.Advice{Kind: "project", Text: text, Hint: hint}
}

// list returns each advice once, in the order of the texts.
func (a *adviceByProject) list() []control.Advice {
	a.mu.Lock()
	defer a.mu.Unlock()
	byText := map[string]control.Advice{}
	for _, n := range a.byCwd {
		byText[n.Text] = n
	}
	var out []control.Advice
	for _, text := range slices.Sorted(maps.Keys(byText)) {
		out = append(out, byText[text])
	}
	return out
}
