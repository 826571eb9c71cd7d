package store_test

import (
	"slices"
	"testing"

	"github.com/ccship/ccship/server"
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
		save(t, st, task, server.Derivation{Answers: []server.Answer{{Key: "k-" + name, Time: start, Model: "m", Tokens: server.Tokens{Answers: 1, Output: 1}}}})
	}
	list := func(who server.User, project string) (ids []string) {
		t.Helper()
		return names(t, st, server.ScopeOf(who), server.SessionQuery{Project: project})
	}
	sum := func(who server.User) (out map[string]int64) {
		t.Helper()
		rows, err := st.Usage(ctx, server.ScopeOf(who), server.UsageQuery{By: []string{"project"}})
		if err != nil {
			t.Fatal(err)
		}
		out = map[string]int64{}
		for _, row := range rows {
			out[row.Project] += row.Tokens.Answers
		}
		return out
	}
	expectNames(t, "of the repository", list(ann, "r"), "a", "b")
	expectNames(t, "of a hash", list(ann, "h1"), "a")
	expectNames(t, "of another's repository", list(ann, "q"))
	if got := sum(ann); got["r"] != 2 || got["h3"] != 1 || len(got) != 2 {
		t.Errorf("use by project: %v", got)
	}
	groups, err := st.Groups(ctx, server.ScopeOf(ann), server.GroupQuery{Project: "r"})
	hashes := []string{}
	for _, g := range groups.List {
		if hashes = append(hashes, g.ProjectHash); g.Repository != "r" {
			t.Errorf("%+v", g)
		}
	}
	if slices.Sort(hashes); err != nil || !slices.Equal(hashes, []string{"h1", "h2"}) {
		t.Errorf("the repository has %v, %v", hashes, err)
	}

	if err := st.AddShare(ctx, server.Share{Owner: ann.ID, With: bob.ID, ProjectHash: "h1", Created: start}); err != nil {
		t.Fatal(err)
	}
	expectNames(t, "shared, of the repository", list(bob, "r"), "a")
	expectNames(t, "shared, all", list(bob, ""), "a", "d")
	if got := sum(bob); got["r"] != 1 || got["q"] != 1 || len(got) != 2 {
		t.Errorf("use by project, shared: %v", got)
	}
	write(ann, "a", "h1", "s")
	write(ann, "a", "h1", "s")
	expectNames(t, "of what it is now", list(ann, "s"), "a")
	write(ann, "a", "h1", "r")
	expectNames(t, "of what it was", list(ann, "r"), "a", "b")
}
