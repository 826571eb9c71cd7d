package store_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/provenance"
)

// edits: those of a stretch replace those stored for its lines; only who may read a session learns of its edits, and
// only of lines that are asked for, and how many others there are; they go with the session.
func (s suite) edits(t *testing.T) {
	st := s.open(t)
	lines := make([]server.Line, 20)
	for i := range lines {
		lines[i] = object(int64(i), "{}")
	}
	put(t, st, batch("s", lines...), func(b *server.Batch) { b.Owner = 5 })
	task := lease(t, st)["s"]
	end := place(t, st, task)
	step := func(to int64, edits ...provenance.Edit) {
		t.Helper()
		d := server.Derivation{Task: task, Position: end, Live: true, Done: to == 20, Edits: edits}
		d.Position.Line = to
		kit.Must(t, st.SaveDerived(t.Context(), &d))
		task.Position = d.Position
	}
	at := time.Date(2026, 3, 12, 9, 0, 0, 0, time.UTC)
	var asked []provenance.Sum
	edit := func(line int64, path string, texts ...string) provenance.Edit {
		e := provenance.Edit{Line: line, Prompt: line - 1, At: at.Add(time.Duration(line) * time.Minute), Path: path}
		for _, text := range texts {
			sum, _, _ := provenance.SumOf(text)
			e.Sums = append(e.Sums, sum)
			if !strings.Contains(text, "unasked") {
				asked = append(asked, sum)
			}
		}
		return e
	}
	expect := func(scope server.Scope, name string, to int64, want string) {
		t.Helper()
		list := kit.Try(st.EditsOf(t.Context(), scope, server.EditQuery{Name: name, To: at.Add(time.Duration(to) * time.Minute),
			Limit: 100, Sums: asked})).Must(t)
		var got []string
		for _, e := range list {
			known := 0
			for _, sum := range e.Sums {
				if slices.Contains(asked, sum) {
					known++
				}
			}
			got = append(got, fmt.Sprintf("%s:%d(%d) %s %d/%d", e.SessionID, e.Line, e.Prompt, e.Path, known, len(e.Sums)+e.Others))
		}
		kit.Equal(t, name, strings.Join(got, ", "), want)
	}
	all, own, other := server.Scope{All: true}, server.Scope{User: task.Owner}, server.Scope{User: task.Owner + 7}
	step(10, edit(3, "/home/kim/shop/Cart.go", "one line of text", "an unasked line"), edit(3, "/home/kim/shop/b.go", "of another file"))
	step(20, edit(9, "/home/kim/shop/cart.go", "called before, done now"), edit(12, `C:/shop/cart.go`, "on another disk"))
	expect(all, "cart.go", 60, "s:12(11) C:/shop/cart.go 1/1, s:9(8) /home/kim/shop/cart.go 1/1, s:3(2) /home/kim/shop/Cart.go 1/2")
	expect(own, "CART.go", 9, "s:9(8) /home/kim/shop/cart.go 1/1, s:3(2) /home/kim/shop/Cart.go 1/2")
	expect(other, "cart.go", 60, "")
	expect(server.Scope{}, "cart.go", 60, "")
	expect(all, "c.go", 60, "")

	kit.Must(t, st.ResetDerived(t.Context()))
	expect(all, "cart.go", 60, "")
	task = lease(t, st)["s"]
	step(20, edit(12, "/home/kim/shop/cart.go", "derived again"))
	expect(all, "cart.go", 60, "s:12(11) /home/kim/shop/cart.go 1/1")
	kit.Try(st.Forget(t.Context(), server.Scope{All: true}, "s", 0, start)).Must(t)
	expect(all, "cart.go", 60, "")
}

// editsGone: what a session wrote is as little there as its line is: masked, it has the hash of the token, and retired
// it has none. What was answered by its edits goes with them.
func (s suite) editsGone(t *testing.T) {
	st := s.open(t)
	const line = `var key = "` + needle + `" // of the shop`
	const kept = `var name = "a shop for everybody"`
	input, _ := json.Marshal(map[string]string{"file_path": "/home/kim/shop/key.go", "content": line + "\n" + kept + "\n"})
	at := start.Format(time.RFC3339Nano)
	call := fmt.Sprintf(`{"type":"assistant","timestamp":%q,"message":{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Write","input":%s}]}}`, at, input)
	put(t, st, batch("s", object(0, fmt.Sprintf(`{"type":"user","timestamp":%q,"message":{"role":"user","content":"write it"}}`, at)),
		object(1, call),
		object(2, fmt.Sprintf(`{"type":"user","timestamp":%q,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]}}`, at))))
	understand(t, st)
	has := func(texts ...string) (n int) {
		t.Helper()
		q := server.EditQuery{Name: "key.go", To: start.Add(time.Hour), Limit: 9}
		for _, text := range texts {
			sum, _, _ := provenance.SumOf(text)
			q.Sums = append(q.Sums, sum)
		}
		list := kit.Try(st.EditsOf(t.Context(), server.Scope{All: true}, q)).Must(t)
		for _, e := range list {
			n += len(e.Sums)
		}
		return n
	}
	want := func(when string, secret, token, other int) {
		t.Helper()
		if got := [3]int{has(line), has(masked(line)), has(kept)}; got != [3]int{secret, token, other} {
			t.Errorf("%s: %d with the secret, %d with its token, %d others; want %d, %d, %d", when, got[0], got[1], got[2], secret, token, other)
		}
	}
	asked := func(when string, keep bool) {
		t.Helper()
		opened(t, st, "s", func(snap server.Snapshot) {
			x := snap.Session()
			list, err := st.Commits(t.Context(), all, x.Owner, x.ID)
			kit.Check(t, len(list) <= 0 && err == nil, "%s: %v, %v", when, list, err)
			if keep {
				keepCommit(t, st, x, "c0ffee", start, 2)
			}
		})
	}
	want("written", 1, 0, 1)
	asked("written", true)

	var m *server.Masking
	opened(t, st, "s", func(snap server.Snapshot) {
		m = &server.Masking{Stream: snap.Session().ID, Lines: []protocol.LineMask{lineMask(t, snap, 1, call)}}
	})
	kit.Equal(t, "masked", mask(t, st, m), protocol.Masked{Lines: 1})
	want("masked", 0, 0, 0)
	asked("masked", true)
	understand(t, st)
	want("derived from what is masked", 0, 1, 1)

	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: 30 * day})
	retire(t, st)
	want("retired", 0, 0, 0)
	asked("retired", false)
	understand(t, st)
	want("derived from what is retired", 0, 0, 0)
}

func keepCommit(t *testing.T, st full, x server.Session, commit string, at time.Time, lines int64) {
	t.Helper()
	share := server.CommitShare{Owner: x.Owner, Stream: x.ID, CommitShare: protocol.CommitShare{Commit: commit, At: at, Added: 9, Lines: lines}}
	kit.Must(t, st.KeepCommits(t.Context(), []server.CommitShare{share}))
}

// commits: who may read a session learns its shares of commits, the newest ones; they go with the session, and outlive
// that it is derived anew.
func (s suite) commits(t *testing.T) {
	st := s.open(t)
	var users [2]server.User
	for i, name := range []string{"ann", "bob"} {
		users[i] = kit.Try(st.AddUser(t.Context(), name, server.Member, server.By{At: start})).Must(t)
	}
	ann, bob := users[0].ID, users[1].ID
	for _, name := range []string{"a", "b"} {
		put(t, st, batch(name, object(0, "{}")), func(b *server.Batch) { b.Owner, b.Head.ProjectHash = ann, "of "+name })
	}
	var a, b server.Session
	opened(t, st, "a", func(snap server.Snapshot) { a = snap.Session() })
	opened(t, st, "b", func(snap server.Snapshot) { b = snap.Session() })
	has := func(scope server.Scope, x server.Session, want string) {
		t.Helper()
		list, err := st.Commits(t.Context(), scope, x.Owner, x.ID)
		got := kit.Each(list, func(c server.CommitShare) string { return fmt.Sprintf("%s:%d/%d", c.Commit, c.Lines, c.Added) })
		out := strings.Join(got, " ")
		kit.Check(t, err == nil && out == want, "%s in %+v: %q, %v; want %q", x.SessionID, scope, out, err, want)
	}
	own, other := server.Scope{User: ann}, server.Scope{User: bob}
	keepCommit(t, st, a, "first", start, 4)
	keepCommit(t, st, a, "second", start.Add(time.Minute), 5)
	keepCommit(t, st, b, "first", start, 6)
	keepCommit(t, st, a, "first", start, 7)
	keepCommit(t, st, server.Session{Owner: ann, ID: 999_999}, "first", start, 1)
	keepCommit(t, st, server.Session{Owner: bob, ID: a.ID}, "third", start, 1)
	has(all, a, "second:5/9 first:7/9")
	has(own, a, "second:5/9 first:7/9")
	has(other, a, "")
	has(server.Scope{}, a, "")
	kit.Must(t, st.AddShare(t.Context(), server.Share{Owner: ann, With: bob, ProjectHash: "of b"}))
	has(other, b, "first:6/9")
	has(other, a, "")
	kit.Must(t, st.ResetDerived(t.Context()))
	has(own, b, "first:6/9")
	for i := range server.MaxCommits {
		keepCommit(t, st, a, fmt.Sprint("later-", i), start.Add(time.Hour), 1)
	}
	list, err := st.Commits(t.Context(), own, a.Owner, a.ID)
	kit.Check(t, err == nil && len(list) == server.MaxCommits && strings.HasPrefix(list[len(list)-1].Commit, "later"),
		"%d commits are kept, %v", len(list), err)
	has(own, b, "first:6/9")
	kit.Try(st.Forget(t.Context(), all, "b", 0, start)).Must(t)
	has(all, b, "")
}

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
		ids = append(ids, kit.Each(found.List, func(x server.RankedSession) string { return x.SessionID })...)
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
		ids = append(ids, kit.Each(edits, func(e server.WrittenEdit) string { return e.SessionID })...)
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
