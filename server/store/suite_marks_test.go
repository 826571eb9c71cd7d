package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// marks: what a user keeps about a session is that user's alone; it is found again, and goes with the session.
func (s suite) marks(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	for _, name := range []string{"a", "b", "c"} {
		put(t, st, batch(name, object(0, `{}`)))
	}
	id := func(name string) int64 {
		snap := openSession(t, st, name)
		return snap.Session().ID
	}
	a, b := id("a"), id("b")
	set := func(reader int64, m server.Mark) {
		t.Helper()
		kit.Must(t, errors.Join(m.Tidy(), st.SetMark(ctx, reader, m)))
	}
	has := func(reader int64, want string) {
		t.Helper()
		list, err := st.Marks(ctx, reader, []int64{a, b})
		got := fmt.Sprintf("%v %s %s %v %v", list[a].Star, list[a].Name, list[a].Note, list[a].Tags, list[b].Tags)
		kit.Check(t, err == nil && got == want, "reader %d has %s, %v; want %s", reader, got, err, want)
	}
	at := time.Date(2026, 11, 23, 1, 2, 3, 0, time.UTC)
	set(1, server.Mark{Stream: a, Star: true, Name: "  the \n first ", Note: "line\n  two\\", Tags: []string{"x", "50%_off", "x", "two words"}, Updated: at})
	set(1, server.Mark{Stream: b, Tags: []string{"x"}})
	set(2, server.Mark{Stream: a, Tags: []string{"other"}})
	has(1, "true the first line\n  two\\ [50%_off two-words x] [x]")
	has(2, "false   [other] []")
	has(3, "false   [] []")
	list, err := st.Marks(ctx, 1, []int64{a})
	kit.Check(t, err == nil && list[a].Updated.Equal(at), "updated %v, %v", list[a].Updated, err)
	for want, q := range map[string]server.SessionQuery{
		"a": {Reader: 1, Starred: true}, "": {Reader: 2, Starred: true}, "a b": {Reader: 1, Tag: "x"}, "a b c": {Reader: 1},
		" a": {Reader: 1, Tag: "50%_off"}, "  ": {Reader: 1, Tag: "50__off"}, "   ": {Reader: 1, Tag: "%"}, "    ": {Reader: 2, Tag: "x"}, "     ": {Reader: 1, Tag: "two"},
	} {
		expectNames(t, fmt.Sprintf("%+v", q), names(t, st, all, q), strings.Fields(want)...)
	}
	tags, err := st.Tags(ctx, 1)
	kit.Check(t, err == nil && fmt.Sprint(tags) == "[50%_off two-words x]", "tags %q, %v", tags, err)
	set(1, server.Mark{Stream: b})
	has(1, "true the first line\n  two\\ [50%_off two-words x] []")
	kit.Err(t, "a mark of nothing", server.ErrNotFound)(nil, st.SetMark(ctx, 1, server.Mark{Stream: 999_999, Star: true}))
	kit.Try(st.Forget(ctx, all, "a", 0, start)).Must(t)
	has(1, "false   [] []")
	has(2, "false   [] []")
	kit.Equal(t, "tags of a forgotten session", kit.Try(st.Tags(ctx, 1)).Must(t), nil)
	for i := range 15 { // of so many the last are listed, however many sessions have others
		name := fmt.Sprint("many", i)
		put(t, st, batch(name, object(0, `{}`)))
		at := kit.Try(st.Resolve(ctx, all, server.Ref{SessionID: name})).Must(t)
		m := server.Mark{Stream: at.Stream, Updated: start.Add(time.Duration(i) * time.Hour)}
		for k := range 20 {
			m.Tags = append(m.Tags, fmt.Sprintf("t%02d-%02d", i, k))
		}
		set(4, m)
	}
	tags, err = st.Tags(ctx, 4)
	kit.Check(t, err == nil && len(tags) == server.MaxListedTags && tags[0] == "t05-00" && tags[len(tags)-1] == "t14-19",
		"of 300 tags %d are listed: %.40q, %v", len(tags), tags, err)
}

// savedViews: what a user saves is that user's alone, has one place for each name, and goes with the user.
func (s suite) savedViews(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ann, bob := addUser(t, st, "ann", server.Owner), addUser(t, st, "bob", server.Member)
	save := func(u server.User, name, page, query string) {
		t.Helper()
		v := server.SavedView{Name: name, Page: page, Query: query, Updated: start}
		kit.Must(t, errors.Join(v.Tidy(), st.SaveView(ctx, u.ID, v)))
	}
	has := func(u server.User, want ...string) {
		t.Helper()
		list, err := st.SavedViews(ctx, u.ID)
		var got []string
		for _, v := range list {
			got = append(got, v.Name+": "+v.Path())
			kit.Check(t, v.Updated.Equal(start), "%q was saved at %v", v.Name, v.Updated)
		}
		kit.Check(t, err == nil && strings.Join(got, "\n") == strings.Join(want, "\n"),
			"%s has\n%s, %v; want\n%s", u.Name, strings.Join(got, "\n"), err, strings.Join(want, "\n"))
	}
	save(ann, "  Broken \n shop ", "", "?view=failed&project=shop&after=5.6&model=")
	save(ann, "Timeouts", server.SearchPage, "q=deadline+exceeded&kind=error&kind=result")
	save(bob, "Timeouts", server.SessionsPage, "q=timeout")
	has(ann, "Broken shop: /?project=shop&view=failed", "Timeouts: /search?q=deadline+exceeded")
	has(bob, "Timeouts: /?q=timeout")
	save(ann, "Timeouts", server.SessionsPage, "tag=slow")
	has(ann, "Broken shop: /?project=shop&view=failed", "Timeouts: /?tag=slow")
	for i, name := range hostile {
		v := server.SavedView{Name: "h" + name + fmt.Sprint(i), Page: server.SessionsPage, Query: "q=" + name, Updated: start}
		kit.Err(t, name, nil)(st.SaveView(ctx, bob.ID, v))
		kit.Err(t, name+" is", nil)(st.RemoveView(ctx, bob.ID, v.Name))
	}
	kit.Err(t, "bob removes ann's", server.ErrNotFound)(nil, st.RemoveView(ctx, bob.ID, "Broken shop"))
	kit.Should(t, st.RemoveView(ctx, ann.ID, "Broken shop"))
	has(ann, "Timeouts: /?tag=slow")
	kit.Err(t, "a view of nobody", server.ErrNotFound)(nil, st.SaveView(ctx, 999_999, server.SavedView{Name: "x", Page: server.SessionsPage, Query: "q=x"}))
	for i := range server.MaxSavedViews - 1 {
		save(ann, fmt.Sprint("view ", i), server.SessionsPage, "q=x")
	}
	err := st.SaveView(ctx, ann.ID, server.SavedView{Name: "one more", Page: server.SessionsPage, Query: "q=x"})
	_, tooMany := errors.AsType[server.ViewError](err)
	kit.Check(t, tooMany, "one view too many: %v", err)
	save(ann, "view 7", server.SessionsPage, "q=in+its+place")
	has(bob, "Timeouts: /?q=timeout")
}

// TestViewsThatCannotBeKept: a view has a name, filters and a page.
func TestViewsThatCannotBeKept(t *testing.T) {
	for want, v := range map[string]server.SavedView{
		"needs a name":   {Name: " \n ", Query: "q=x"},
		"80 bytes":       {Name: strings.Repeat("x", 81), Query: "q=x"},
		"text":           {Name: "a\x00b", Query: "q=x"},
		"one filter":     {Name: "x", Query: "by=project&after=5&filters=1&q="},
		"needs words":    {Name: "x", Page: server.SearchPage, Query: "project=shop"},
		"or of a search": {Name: "x", Page: "usage", Query: "q=x"},
		"4096":           {Name: "x", Query: "q=" + strings.Repeat("x", 5000)},
		"address":        {Name: "x", Query: "q=%zz"},
	} {
		err := v.Tidy()
		kit.Check(t, err != nil && strings.Contains(err.Error(), want), "%+v: %v, want %q", v, err, want)
	}
	v := server.SavedView{Name: "x", Query: "b=2&a=1"}
	err := v.Tidy()
	kit.Check(t, err == nil && v.Is(server.SessionsPage, map[string][]string{"a": {"1"}, "b": {"2"}, "after": {"9"}}) &&
		!v.Is(server.SessionsPage, map[string][]string{"a": {"1"}}) &&
		!v.Is(server.SearchPage, map[string][]string{"a": {"1"}, "b": {"2"}}), "%+v, %v is not told apart from others", v, err)
}

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
