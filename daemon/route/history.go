package route

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// HistoryFilter leaves lines out of prompt histories, which hold prompts of every project: those of projects that have
// opted out, and of sessions that were forgotten. When an opt-out ends, the history is delivered again from line 0. It
// is safe for concurrent use.
type HistoryFilter struct {
	tombstones *Tombstones
	projects   *project.Finder
	// persisted is what lines were left out for, as the state has it. It never lacks a project of a committed line: one
	// too many costs a delivery at the next start, one too few would cost lines.
	persisted *state.Persisted[excludedProjects]

	mu       sync.Mutex
	excluded excludedProjects // what lines were left out for; guarded by mu
	unknown  []tail.FileID    // histories with lines left out, and not known for what; guarded by mu
}

// excludedProjects are the projects whose lines were left out of each history, by working directory. A history that
// lacks lines of forgotten sessions only has an empty set.
type excludedProjects map[tail.FileID]map[string]bool

func (x excludedProjects) clone() excludedProjects {
	c := excludedProjects{}
	for id, projects := range x {
		c[id] = maps.Clone(projects)
	}
	return c
}

// loadHistoryFilter reads what was left out of the histories before the daemon was started.
func loadHistoryFilter(ctx context.Context, db *state.DB, tombstones *Tombstones, projects *project.Finder,
	facts map[tail.FileID]state.Routing,
) (*HistoryFilter, error) {
	h := &HistoryFilter{tombstones: tombstones, projects: projects, excluded: excludedProjects{}}
	var err error
	h.persisted, err = state.LoadPersisted[excludedProjects](ctx, db, "omitted")
	if err != nil && !errors.Is(err, state.ErrUnreadable) { // if unreadable, every history is delivered once more
		return nil, fmt.Errorf("load the filter of prompt histories: %w", err)
	}
	all := h.persisted.Get()
	for id, f := range facts {
		if !f.Stream.Extended || f.Excluded == 0 {
			continue
		}
		if projects, known := all[id]; known {
			h.excluded[id] = maps.Clone(projects)
		} else {
			h.unknown = append(h.unknown, id)
		}
	}
	return h, h.persisted.Change(ctx, func(excludedProjects) (excludedProjects, bool) {
		return h.snapshot(), len(h.excluded) < len(all)
	})
}

// historyLine is where a line of a prompt history belongs.
type historyLine struct {
	Project string `json:"project"`
	Session string `json:"sessionId"`
}

// Excludes reports whether a line of a history is left out, and keeps for which project.
func (h *HistoryFilter) Excludes(id tail.FileID, line []byte) bool {
	var entry historyLine
	if json.Unmarshal(line, &entry) != nil {
		entry = historyLine{}
	}
	forgotten := entry.Session != "" && h.tombstones.has(entry.Session) // which is for good
	if !forgotten && (entry.Project == "" || enabled(h.projects, entry.Project)) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.excluded[id] == nil {
		h.excluded[id] = map[string]bool{}
	}
	if !forgotten {
		h.excluded[id][entry.Project] = true
	}
	return true
}

// Any reports whether anything was left out of a history.
func (h *HistoryFilter) Any() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.excluded) > 0
}

// Readmitted returns the histories that lack lines of a project which is no longer excluded, each once. They are to be
// delivered again from line 0.
func (h *HistoryFilter) Readmitted() (again []tail.FileID) {
	h.mu.Lock()
	all := h.excluded.clone()
	again, h.unknown = h.unknown, nil
	h.mu.Unlock()
	for id, projects := range all {
		for cwd := range projects {
			if enabled(h.projects, cwd) {
				again = append(again, id)
				break
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range again {
		delete(h.excluded, id)
	}
	return again
}

// Persist makes durable for which projects lines were left out so far. Call it before the lines around them are
// committed.
func (h *HistoryFilter) Persist(ctx context.Context) error {
	err := h.persisted.Change(ctx, func(old excludedProjects) (excludedProjects, bool) {
		next, changed := old.clone(), false
		for id, projects := range h.snapshot() {
			if next[id] == nil {
				next[id], changed = map[string]bool{}, true
			}
			for cwd := range projects {
				changed = changed || !next[id][cwd]
				next[id][cwd] = true
			}
		}
		return next, changed
	})
	if err != nil {
		return fmt.Errorf("store the filter of prompt histories: %w", err)
	}
	return nil
}

// Restarted forgets durably what was left out of a history before it was delivered again from line 0. Call it after
// that was committed.
func (h *HistoryFilter) Restarted(ctx context.Context, id tail.FileID) error {
	return h.persisted.Change(ctx, func(old excludedProjects) (excludedProjects, bool) {
		projects, some := h.snapshot()[id]
		if _, had := old[id]; had == some && maps.Equal(old[id], projects) {
			return nil, false
		}
		next := old.clone()
		delete(next, id)
		if some {
			next[id] = projects
		}
		return next, true
	})
}

func (h *HistoryFilter) snapshot() excludedProjects {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.excluded.clone()
}
