package route

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
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
	included, err := r.typesIncluded(ctx)
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
		if moves || included && f.Excluded > f.SentBefore && !f.Stream.Extended {
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

// loadTypes reads which record types were left out when the daemon ran last.
func (r *Router) loadTypes(ctx context.Context) (err error) {
	r.types, err = state.LoadPersisted[[]string](ctx, r.db, "exclude_types")
	if errors.Is(err, state.ErrUnreadable) {
		r.retyped, err = true, nil
	}
	return err
}

// typesIncluded reports whether record types that were left out before are included now. It reports each change once.
func (r *Router) typesIncluded(ctx context.Context) (included bool, err error) {
	types := r.rules.Load().ExcludeTypes
	err = r.types.Change(ctx, func(before []string) ([]string, bool) {
		included = r.retyped || slices.ContainsFunc(before, func(t string) bool { return !types[t] })
		now := slices.Sorted(maps.Keys(types))
		return now, r.retyped || !slices.Equal(before, now)
	})
	if err == nil {
		r.retyped = false
	}
	return included, err
}
