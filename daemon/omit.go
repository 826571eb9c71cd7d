package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/ccship/ccship/tail"
)

// The prompt history holds prompts of every project. Those of a project that has opted out are left out of it, line
// by line; when that ends, the history is delivered again from line 0.

// omissions are the projects whose lines were left out of a history.
type omissions map[tail.FileID]map[string]bool

// historyLine is what a line of the prompt history says of where it belongs, "" what it does not say.
type historyLine struct {
	Project string `json:"project"`
	Session string `json:"sessionId"`
}

func readHistoryLine(line []byte) historyLine {
	var entry historyLine
	if json.Unmarshal(line, &entry) != nil {
		return historyLine{}
	}
	return entry
}

// omits says whether a line of a history is to be left out, and remembers why.
func (d *desk) omits(id tail.FileID, line []byte) bool {
	entry := readHistoryLine(line)
	forgotten := entry.Session != "" && d.graves.has(entry.Session) // which is for good
	if !forgotten && (entry.Project == "" || d.enabled(entry.Project)) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.omitted[id] == nil {
		d.omitted[id] = map[string]bool{}
	}
	if !forgotten {
		d.omitted[id][entry.Project] = true
	}
	return true
}

// omitsAny says whether anything was left out of a history.
func (d *desk) omitsAny() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.omitted) > 0
}

// takeIncluded names the histories that lack lines of a project which has not opted out any more, once.
func (d *desk) takeIncluded() (again []tail.FileID) {
	d.mu.Lock()
	all := map[tail.FileID][]string{}
	for id, projects := range d.omitted {
		for cwd := range projects {
			all[id] = append(all[id], cwd)
		}
	}
	d.mu.Unlock()
	for id, projects := range all {
		for _, cwd := range projects {
			if d.enabled(cwd) {
				again = append(again, id)
				break
			}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range again {
		delete(d.omitted, id)
	}
	return again
}

// keptOmitted is the name of the omissions in the state.
const keptOmitted = "omitted"

// keepOmitted makes durable what was left out so far. It comes before the commit of the lines around it: a project too
// many costs a delivery at the next start, one too few would cost lines.
func (d *desk) keepOmitted(ctx context.Context) error {
	return d.changeKept(ctx, func(kept, now omissions) (changed bool) {
		for id, projects := range now {
			if kept[id] == nil {
				kept[id], changed = map[string]bool{}, true
			}
			for cwd := range projects {
				changed = changed || !kept[id][cwd]
				kept[id][cwd] = true
			}
		}
		return changed
	})
}

// keepAnew forgets durably what was left out of a history before it was begun anew. It comes after that commit.
func (d *desk) keepAnew(ctx context.Context, id tail.FileID) error {
	return d.changeKept(ctx, func(kept, now omissions) bool {
		projects, some := now[id]
		if _, had := kept[id]; had == some && maps.Equal(kept[id], projects) {
			return false
		}
		delete(kept, id)
		if some {
			kept[id] = projects
		}
		return true
	})
}

// changeKept changes what the state has of the omissions. f is given copies of that and of what holds now, and says
// whether it changed the first.
func (d *desk) changeKept(ctx context.Context, f func(kept, now omissions) bool) error {
	d.keeping.Lock()
	defer d.keeping.Unlock()
	d.mu.Lock()
	now := d.omitted.clone()
	d.mu.Unlock()
	next := d.kept.clone()
	if !f(next, now) {
		return nil
	}
	text, err := json.Marshal(next)
	if err == nil {
		err = d.db.Remember(ctx, keptOmitted, text)
	}
	if err != nil {
		return fmt.Errorf("keep what was left out: %w", err)
	}
	d.kept = next
	return nil
}

func (o omissions) clone() omissions {
	c := omissions{}
	for id, projects := range o {
		c[id] = maps.Clone(projects)
	}
	return c
}

// recallOmitted recalls what was left out of the histories before the daemon was started, and names those that lack
// lines which would not be left out now, or of which nothing is known. It comes before the first chunk.
func (d *desk) recallOmitted(ctx context.Context) (again []tail.FileID, err error) {
	facts, err := d.db.LoadFacts(ctx)
	if err != nil {
		return nil, fmt.Errorf("recall what was left out: %w", err)
	}
	text, err := d.db.Remembered(ctx, keptOmitted)
	if err != nil {
		return nil, fmt.Errorf("recall what was left out: %w", err)
	}
	all := omissions{}
	if text != nil && json.Unmarshal(text, &all) != nil {
		all = omissions{} // every history is delivered once more
	}
	kept := omissions{}
	for id, f := range facts {
		if !f.Stream.Extended || f.Excluded == 0 {
			continue
		}
		if projects, known := all[id]; known {
			kept[id] = projects
		} else {
			again = append(again, id)
		}
	}
	d.keeping.Lock()
	d.kept = kept
	d.keeping.Unlock()
	d.mu.Lock()
	d.omitted = kept.clone()
	d.mu.Unlock()
	return append(again, d.takeIncluded()...), nil
}
