package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// momentsOf lists moments as "line.part kind data".
func momentsOf(t *testing.T, st full, q server.MomentQuery) string {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 1000
	}
	list := kit.Try(st.Moments(t.Context(), q)).Must(t)
	return strings.Join(kit.Each(list, func(m server.Moment) string { return fmt.Sprintf("%d.%d %s %s", m.Line, m.Part, m.Kind, m.Data) }), ", ")
}

// moments: those of a stretch replace those stored for its lines, those of earlier lines replace one by one, and the
// end of the view cuts off the rest.
func (s suite) moments(t *testing.T) {
	st := s.open(t)
	lines := make([]server.Line, 40)
	for i := range lines {
		lines[i] = object(int64(i), "{}")
	}
	put(t, st, batch("s", lines...))
	task := lease(t, st)["s"]
	end := place(t, st, task)
	step := func(from, to int64, done bool, moments ...server.Moment) {
		t.Helper()
		d := server.Derivation{Task: task, Position: end, Live: true, LiveFrom: from, Done: done, Moments: moments}
		d.Position.Line = to
		kit.Must(t, st.SaveDerived(t.Context(), &d))
		task.Position = d.Position
	}
	at := func(line, part int64, kind, data string) server.Moment {
		return server.Moment{Line: line, Part: part, Kind: kind, Data: []byte(data)}
	}
	expect := func(q server.MomentQuery, want string) {
		t.Helper()
		q.Owner, q.Stream = task.Owner, task.Stream
		kit.Equal(t, fmt.Sprintf("%+v", q), momentsOf(t, st, q), want)
	}
	step(0, 10, false,
		at(0, 0, "command", "first"), at(1, 0, "prompt", "running"), at(1, 1, "error", "x"), at(9, 0, "rewind", "r"))
	var many []server.Moment
	for i := range int64(120) {
		many = append(many, at(20, i, "tool", fmt.Sprint(i)))
	}
	step(10, 30, false, append(many, at(1, 0, "prompt", "took"), at(9, 0, "", ""), at(10, 0, "command", "mid"))...)
	expect(server.MomentQuery{To: 20}, "0.0 command first, 1.0 prompt took, 1.1 error x, 10.0 command mid")
	expect(server.MomentQuery{From: 20, After: &server.Moment{Line: 20, Part: 117}}, "20.118 tool 118, 20.119 tool 119")
	expect(server.MomentQuery{Kinds: []string{"prompt", "error"}, Backwards: true, To: 21, Limit: 1}, "1.1 error x")
	expect(server.MomentQuery{Kinds: []string{"' OR 1=1 --"}}, "")

	// Derived again, from a shorter file.
	step(30, 40, true, at(35, 0, "clear", "old"))
	kit.Must(t, st.Renew(t.Context(), 1))
	task = lease(t, st)["s"]
	step(0, 10, false, at(2, 0, "prompt", "new"))
	expect(server.MomentQuery{Kinds: []string{"prompt", "error", "clear", "command"}},
		"2.0 prompt new, 10.0 command mid, 35.0 clear old")
	step(10, 12, true, at(11, 0, "clear", "last"))
	expect(server.MomentQuery{}, "2.0 prompt new, 11.0 clear last")

	kit.Must(t, st.ResetDerived(t.Context()))
	expect(server.MomentQuery{}, "")
	task = lease(t, st)["s"]
	step(0, 40, true, at(2, 0, "prompt", "again"))
	kit.Try(st.Forget(t.Context(), all, "s", 0, time.Now())).Must(t)
	expect(server.MomentQuery{}, "")
}

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
