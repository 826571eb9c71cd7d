package route

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// Rules is what the configuration says about where lines go.
type Rules struct {
	OwnServer       string          // normalised URL of the user's server; "" none
	TrustedProjects []string        // project folders whose own server is followed
	History         bool            // history.jsonl is delivered
	MaxEntries      int             // entries in a request, unless the project has its own limit
	ExcludeTypes    map[string]bool // record types that are left out
	ExcludeProjects []string        // patterns of project folders that are left out
}

// SetRules applies rules to every chunk from now on. The caller must not change them any more. Call Reroute to apply
// them to known files.
func (r *Router) SetRules(rules Rules) {
	r.projects.Exclude(rules.ExcludeProjects)
	r.rules.Store(&rules)
}

// LeavesOut reports whether a line is of a record type that is left out.
func (r *Rules) LeavesOut(l *transcript.Line) bool {
	return len(r.ExcludeTypes) > 0 && l.Shape == transcript.Object && r.ExcludeTypes[string(l.Type)]
}

// Rules returns the rules in force. They are shared: the caller must not change them.
func (r *Router) Rules() *Rules { return r.rules.Load() }

// Reroute applies the rules in force to the known files: it records which are excluded, and returns the files to
// deliver again from line 0. A quiet file gets no chunks, so only Reroute finds it. With an error the result holds what
// was found before it.
func (r *Router) Reroute(ctx context.Context) (again []tail.FileID, err error) {
	again = r.History.Readmitted()
	facts, err := r.db.Files.Routings(ctx)
	if err != nil {
		return again, err
	}
	speaks := map[string]bool{} // from the state: a drainer does not know before its first answer
	for _, dest := range r.db.Outbox.Destinations() {
		learned, err := r.db.Outbox.Learned(ctx, dest)
		if err != nil {
			return again, fmt.Errorf("read what is known of %s: %w", dest, err)
		}
		speaks[dest] = learned.Extension
	}
	readmitted, err := r.readmit(ctx, facts)
	if err != nil {
		return again, err
	}
	for id, f := range facts {
		if !f.Decided {
			continue
		}
		t := r.target(&f)
		if t.verdict == Excluded {
			r.exclusions.add(id, t.exclusion)
		}
		moves := t.verdict == Take && (f.Dest != "" && f.Dest != t.dest || tookPlain(&f) && speaks[f.Dest])
		if moves || slices.Contains(readmitted, id) {
			again = append(again, id)
		}
	}
	return again, nil
}

// ExcludedNow returns which of some files are excluded by the rules in force.
func (r *Router) ExcludedNow(facts map[tail.FileID]state.Routing) map[tail.FileID]Exclusion {
	out := map[tail.FileID]Exclusion{}
	for id, f := range facts {
		if !f.Decided {
			continue
		}
		if t := r.target(&f); t.verdict == Excluded {
			out[id] = t.exclusion
		}
	}
	return out
}

// leftOut is which record types are left out, and which files lack lines of other types: they are to be delivered again
// from line 0. It outlives a restart before that is done.
type leftOut struct {
	Types []string
	Again []tail.FileID
}

// loadLeftOut reads what was left out when the daemon ran last.
func (r *Router) loadLeftOut(ctx context.Context) (err error) {
	r.leftOut, err = state.LoadPersisted[leftOut](ctx, r.db, "exclude_types")
	if errors.Is(err, state.ErrUnreadable) {
		r.retyped, err = true, nil
	}
	return err
}

// readmit returns the files that lack lines of record types that were left out when they were read, and are not any
// more.
func (r *Router) readmit(ctx context.Context, facts map[tail.FileID]state.Routing) (again []tail.FileID, err error) {
	types := r.rules.Load().ExcludeTypes
	err = r.leftOut.Change(ctx, func(before leftOut) (leftOut, bool) {
		included := r.retyped || slices.ContainsFunc(before.Types, func(t string) bool { return !types[t] })
		again = nil
		for id, f := range facts {
			lacks := included && f.Decided && f.Excluded > f.SentBefore && !f.Stream.Extended
			if lacks || slices.Contains(before.Again, id) {
				again = append(again, id)
			}
		}
		slices.Sort(again)
		now := slices.Sorted(maps.Keys(types))
		return leftOut{now, again}, r.retyped || !slices.Equal(before.Types, now) || !slices.Equal(before.Again, again)
	})
	if err == nil {
		r.retyped = false
	}
	return again, err
}

// Restarted notes that a file was delivered again from line 0 by some rules. Call it after that is committed.
func (r *Router) Restarted(ctx context.Context, id tail.FileID, by *Rules) error {
	if !slices.Contains(r.leftOut.Get().Again, id) {
		return nil
	}
	return r.leftOut.Change(ctx, func(before leftOut) (leftOut, bool) {
		again := slices.DeleteFunc(slices.Clone(before.Again), func(x tail.FileID) bool { return x == id })
		return leftOut{before.Types, again}, r.rules.Load() == by // else the rules have changed meanwhile
	})
}
