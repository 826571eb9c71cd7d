package daemon

import (
	"cmp"
	"context"
	"slices"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/tail"
)

// Excludes returns why transcripts are not delivered, and how many of those on disk each reason covers.
func (d *Daemon) Excludes(ctx context.Context) (control.Excludes, error) {
	conf := d.conf.Load()
	a := control.Excludes{
		SchemaVersion: control.SchemaVersion, Config: conf.Path, Origin: string(conf.OriginOf("exclude_projects")),
		Patterns: []control.Exclusion{},
	}
	counts, err := d.reasons(ctx)
	if err != nil {
		return a, err
	}
	for _, pattern := range conf.ExcludeProjects {
		why := project.ExcludedBy(pattern)
		a.Patterns = append(a.Patterns, control.Exclusion{Pattern: pattern, Transcripts: counts[why]})
		delete(counts, why)
	}
	for why, n := range counts {
		a.Others = append(a.Others, control.Reason{Why: why, Transcripts: n})
	}
	slices.SortFunc(a.Others, func(x, y control.Reason) int { return cmp.Compare(x.Why, y.Why) })
	return a, nil
}

// reasons counts the transcripts on disk that are not delivered, by reason.
func (d *Daemon) reasons(ctx context.Context) (map[string]int, error) {
	facts, err := d.db.Files.Routings(ctx)
	if err != nil {
		return nil, err
	}
	out := d.router.ExcludedOnDisk(d.tailer)
	for id, e := range d.router.ExcludedNow(facts) {
		out[id] = e.Why
	}
	counts := map[string]int{}
	for _, t := range d.tailer.Present() {
		if why, excluded := out[t.File.ID]; excluded && t.File.Kind != tail.History {
			counts[why]++
		}
	}
	return counts, nil
}
