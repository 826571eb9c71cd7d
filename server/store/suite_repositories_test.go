package store_test

import (
	"slices"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/provenance"
)

// repositories: projects that a client says are one repository are listed and summed as one, each in its user's own
// view; nobody sees more by it.
func (s suite) repositories(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ann, bob := addUser(t, st, "ann", server.Member), addUser(t, st, "bob", server.Member)
	write := func(owner server.User, session, hash, repository string) {
		t.Helper()
		b := batch(session, object(0, `{}`))
		b.Owner, b.Head.ProjectHash, b.Head.Project, b.Head.Repository = owner.ID, hash, "shop-"+hash, repository
		put(t, st, b)
	}
	write(ann, "a", "h1", "r")
	write(ann, "b", "h2", "r")
	write(ann, "c", "h3", "")
	write(bob, "d", "h1", "q")
	for name, task := range lease(t, st) {
		save(t, st, task, server.Derivation{
			Answers: []server.Answer{{Key: "k-" + name, Time: start, Model: "m", Tokens: server.Tokens{Answers: 1, Output: 1}}},
			Edits:   []provenance.Edit{{Line: 0, At: start, Path: "/src/cart.go"}}})
	}
	list := func(who server.User, project string) (ids []string) {
		t.Helper()
		return names(t, st, server.ScopeOf(who), server.SessionQuery{Project: project})
	}
	// expect: lists, searches, groups, use and edits all choose the sessions of a project.
	expect := func(what string, who server.User, project string, want ...string) {
		t.Helper()
		scope := server.ScopeOf(who)
		expectNames(t, what, list(who, project), want...)
		found, err := st.Rank(ctx, scope, server.RankQuery{Query: server.ParseQuery("project:"+project, start), Limit: 9, Facets: true})
		ids, count := []string{}, int64(0)
		for _, x := range found.List {
			ids = append(ids, x.SessionID)
		}
		for _, f := range found.Facets.Projects {
			count += f.Count
		}
		slices.Sort(ids)
		kit.Check(t, err == nil && slices.Equal(ids, want) && count == int64(len(want)),
			"%s: searched: %q, %+v, %v", what, ids, found.Facets, err)
		groups, err := st.Groups(ctx, scope, server.GroupQuery{Project: project})
		sessions := int64(0)
		for _, g := range groups.List {
			sessions += g.Sessions
		}
		rows, failed := st.Usage(ctx, scope, server.UsageQuery{Project: project})
		used := int64(0)
		for _, row := range rows {
			used += row.Tokens.Answers
		}
		kit.Check(t, err == nil && failed == nil && sessions == int64(len(want)) && used == sessions,
			"%s: %+v, %+v: %v, %v", what, groups.List, rows, err, failed)
		edits, err := st.EditsOf(ctx, scope, server.EditQuery{Name: "cart.go", Project: project, To: start, Limit: 9})
		ids = []string{}
		for _, e := range edits {
			ids = append(ids, e.SessionID)
		}
		slices.Sort(ids)
		kit.Check(t, err == nil && slices.Equal(ids, want), "%s: edits of %q, %v", what, ids, err)
	}
	sum := func(who server.User) (out map[string]int64) {
		t.Helper()
		rows := kit.Try(st.Usage(ctx, server.ScopeOf(who), server.UsageQuery{By: []string{"project"}})).Must(t)
		out = map[string]int64{}
		for _, row := range rows {
			out[row.Project] += row.Tokens.Answers
		}
		return out
	}
	for _, project := range []string{"r", "h1", "h2", "shop-h1", "shop-h2"} {
		expect("of the repository", ann, project, "a", "b")
	}
	for _, project := range []string{"h3", "shop-h3"} {
		expect("of no repository", ann, project, "c")
	}
	expect("of another's repository", ann, "q")
	got := sum(ann)
	kit.Check(t, got["r"] == 2 && got["h3"] == 1 && len(got) == 2, "use by project: %v", got)
	groups, err := st.Groups(ctx, server.ScopeOf(ann), server.GroupQuery{Project: "r"})
	hashes := []string{}
	for _, g := range groups.List {
		hashes = append(hashes, g.ProjectHash)
		kit.Check(t, g.Repository == "r", "%+v", g)
	}
	slices.Sort(hashes)
	kit.Check(t, err == nil && slices.Equal(hashes, []string{"h1", "h2"}), "the repository has %v, %v", hashes, err)

	kit.Must(t, st.AddShare(ctx, server.Share{Owner: ann.ID, With: bob.ID, ProjectHash: "h1", Created: start}))
	expect("shared, of the repository", bob, "r", "a")
	expect("one's own", bob, "q", "d")
	expect("two of one name", bob, "shop-h1", "a", "d")
	for _, project := range []string{"h2", "shop-h2", "h3", "shop-h3"} {
		expect("of a clone that is not shared", bob, project)
	}
	expectNames(t, "shared, all", list(bob, ""), "a", "d")
	got = sum(bob)
	kit.Check(t, got["r"] == 1 && got["q"] == 1 && len(got) == 2, "use by project, shared: %v", got)
	write(ann, "a", "h1", "s")
	write(ann, "a", "h1", "s")
	for _, project := range []string{"s", "h1"} {
		expect("of what it is now", ann, project, "a")
	}
	write(ann, "a", "h1", "r")
	expect("of what it was", ann, "shop-h2", "a", "b")
}
