package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// active: sessions are listed by when they were last written to, whatever the order in which an import brings them.
// No record is believed to be from after its arrival.
func (s suite) active(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ended := map[string]time.Time{
		"newest": start.Add(-time.Hour),
		"older":  start.Add(-48 * time.Hour),
		"oldest": start.Add(-720 * time.Hour),
		"future": start.Add(100 * 365 * 24 * time.Hour),
		"none":   {},
	}
	for i, name := range []string{"newest", "older", "oldest", "future", "none"} { // as an import does: newest first
		put(t, st, batch(name, object(0, `{"type":"user"}`)),
			func(b *server.Batch) { b.Received = start.Add(time.Duration(i) * time.Second) })
	}
	recent := func(q server.SessionQuery) (out []string) {
		t.Helper()
		q.Limit, q.Recent = 2, true
		for {
			found := kit.Try(st.Find(ctx, all, q)).Must(t)
			for _, x := range found.List {
				out = append(out, x.SessionID)
				kit.Check(t, !x.Active.After(x.Last), "%s: active at %s, heard last at %s", x.SessionID, x.Active, x.Last)
			}
			if q.After = found.Next; q.After == "" {
				return out
			}
			kit.Require(t, len(out) <= 2*len(ended), "pages without end: %q", out)
		}
	}
	expectNames(t, "before anything is derived", recent(server.SessionQuery{}), "none", "future", "oldest", "older", "newest")
	for name, task := range lease(t, st) {
		save(t, st, task, server.Derivation{Summary: server.Summary{Started: ended[name], Ended: ended[name]}})
	}
	expectNames(t, "by activity", recent(server.SessionQuery{}), "none", "future", "newest", "older", "oldest")
	expectNames(t, "active since", recent(server.SessionQuery{Since: start.Add(-49 * time.Hour)}), "none", "future", "newest", "older")
	kit.Equal(t, "begun before", strings.Join(recent(server.SessionQuery{Until: start.Add(-2 * time.Hour)}), " "), "older oldest")
	groups := groupsOf(t, st, all)
	kit.Check(t, len(groups) == 1 && groups[0].Last.Equal(start.Add(4*time.Second)), "groups %+v", groups)
}

// checkDropped: what is counted of rewrites is what is listed.
func checkDropped(t *testing.T, st full, when string, scope server.Scope, list []server.Drop) {
	t.Helper()
	of := kit.Try(st.Find(t.Context(), scope, server.SessionQuery{Page: server.Page{Limit: 100}, Agents: true})).Must(t)
	for _, most := range []int64{1, 2, 100} {
		got, err := st.Dropped(t.Context(), scope, of.List, most)
		kit.Check(t, err == nil && got.Count == min(most, int64(len(list))),
			"%s: %d rewrites up to %d, %v; %d are listed", when, got.Count, most, err, len(list))
		for _, d := range list {
			kit.Check(t, got.Streams[d.Session.ID], "%s: %s has no rewrite", when, d.Session.SessionID)
		}
		kit.Equal(t, fmt.Sprintf("%s: sessions %v had rewrites", when, got.Streams), len(got.Streams), len(list))
	}
}
