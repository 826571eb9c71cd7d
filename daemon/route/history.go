package route

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// HistoryFilter leaves lines out of prompt histories, which hold prompts of every project: lines of projects that have
// opted out, of sessions that began in one, wherever they were typed, and of forgotten sessions. When an opt-out ends,
// the history is delivered again from line 0. It is safe for concurrent use.
type HistoryFilter struct {
	tombstones *Tombstones
	projects   *project.Finder
	// persisted is the state's copy of excluded. It never lacks a project of a committed line: an extra project costs a
	// delivery at the next start, a missing one would cost lines.
	persisted *state.Persisted[excludedProjects]

	mu       sync.Mutex
	excluded excludedProjects // what lines were left out for; guarded by mu
	unknown  []tail.FileID    // histories with lines left out for unknown projects; guarded by mu
	// begun are the working directories in which sessions began, as their transcripts say, or else the project of their
	// first prompt; guarded by mu.
	begun map[string]string
}

// excludedProjects are the projects whose lines were left out of each history, by working directory. The set is empty
// for a history that lacks only lines of forgotten sessions.
type excludedProjects map[tail.FileID]map[string]bool

func (x excludedProjects) clone() excludedProjects {
	c := excludedProjects{}
	for id, projects := range x {
		c[id] = maps.Clone(projects)
	}
	return c
}

// loadHistoryFilter reads what earlier runs of the daemon left out of histories.
func loadHistoryFilter(ctx context.Context, db *state.DB, tombstones *Tombstones, projects *project.Finder,
	facts map[tail.FileID]state.Routing,
) (*HistoryFilter, error) {
	h := &HistoryFilter{tombstones: tombstones, projects: projects, excluded: excludedProjects{},
		begun: map[string]string{}}
	var err error
	h.persisted, err = state.LoadPersisted[excludedProjects](ctx, db, "omitted")
	if err != nil && !errors.Is(err, state.ErrUnreadable) { // if unreadable, every history is delivered once more
		return nil, fmt.Errorf("load the filter of prompt histories: %w", err)
	}
	all := h.persisted.Get()
	for id, f := range facts {
		h.learn(&f)
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

// historyLine is the project and session of a line of a prompt history.
type historyLine struct {
	Project string `json:"project"`
	Session string `json:"sessionId"`
}

// learn notes where a session began.
func (h *HistoryFilter) learn(f *state.Routing) {
	if f.Stream.Extended || f.Stream.Parent != "" || f.Stream.Cwd == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun[f.Stream.SessionID] = f.Stream.Cwd
}

// began returns where the session of a line began. Its transcript may not have been read yet: then it is looked for on
// disk.
func (h *HistoryFilter) began(root string, l historyLine) string {
	name := transcript.EscapeName(l.Session)
	h.mu.Lock()
	cwd, known := h.begun[name]
	h.mu.Unlock()
	if known || l.Session == "" {
		return cwd
	}
	folders, _ := os.ReadDir(root) // without one there is no transcript
	for _, folder := range folders {
		if cwd = cwdOnDisk(filepath.Join(root, folder.Name()), l.Session); cwd != "" {
			break
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.begun[name]; !known {
		h.begun[name] = cmp.Or(cwd, l.Project)
	}
	return h.begun[name]
}

// Excludes reports whether a line of a history is left out, and records the projects that it is left out for.
func (h *HistoryFilter) Excludes(f *tail.File, line []byte) bool {
	var entry historyLine
	if json.Unmarshal(line, &entry) != nil {
		entry = historyLine{}
	}
	forgotten := entry.Session != "" && h.tombstones.has(entry.Session) // forgotten sessions stay forgotten
	var out []string
	if !forgotten {
		out = slices.DeleteFunc([]string{entry.Project, h.began(f.Root, entry)}, func(cwd string) bool {
			return cwd == "" || enabled(h.projects, cwd)
		})
		if len(out) == 0 {
			return false
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.excluded[f.ID] == nil {
		h.excluded[f.ID] = map[string]bool{}
	}
	for _, cwd := range out {
		h.excluded[f.ID][cwd] = true
	}
	return true
}

// Any reports whether anything was left out of a history.
func (h *HistoryFilter) Any() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.excluded) > 0
}

// Readmitted returns, each once, the histories that lack lines of a project that is no longer excluded. The caller
// delivers them again from line 0.
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

// Persist stores the projects for which lines were left out so far. Call it before the lines around them are committed.
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

// Restarted durably clears the record of what was left out of a history that is delivered again from line 0. Call it
// after that is committed.
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
