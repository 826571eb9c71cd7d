package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

var all = server.Scope{All: true}

// names are the sessions that a query finds.
func names(t *testing.T, st full, scope server.Scope, q server.SessionQuery) []string {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	found, err := st.Find(t.Context(), scope, q)
	kit.Require(t, err == nil, "find %+v: %v", q, err)
	out := []string{}
	out = append(out, kit.Each(found.List, func(x server.FoundSession) string { return x.SessionID })...)
	n, err := st.Count(t.Context(), scope, q, int64(q.Limit))
	kit.Check(t, q.After != "" || err == nil && n == int64(len(out)), "count %+v: %d, %v; found %d", q, n, err, len(out))
	slices.Sort(out)
	return out
}

func expectNames(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	kit.Equal(t, what+": found", strings.Join(got, " "), strings.Join(want, " "))
}

// scopes: what a scope does not allow is not there, in every method that takes one.
func (s suite) scopes(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ann, bob := members(t, st)
	deriveAll(t, st)
	annScope, bobScope := server.ScopeOf(ann), server.ScopeOf(bob)
	sees := func(when string, scope server.Scope, want ...string) {
		t.Helper()
		seesIn(t, st, when, scope, want, ann, bob)
	}
	sees("an owner", all, "anns", "bobs", "nobodys")
	sees("nobody", server.Scope{})
	sees("ann", annScope, "anns")
	sees("bob", bobScope, "bobs")
	sees("somebody else", server.Scope{User: 999})
	share := server.Share{Owner: ann.ID, With: bob.ID, ProjectHash: "ph", Created: start}
	kit.Must(t, st.AddShare(ctx, share))
	sees("bob, with whom ann shares", bobScope, "anns", "bobs")
	sees("ann, who shares", annScope, "anns")
	kit.Err(t, "bob forgets what ann shares", server.ErrNotFound)(st.Forget(ctx, bobScope, "anns", 0, start))
	kit.Must(t, st.RemoveShare(ctx, share))
	sees("bob, no longer shared with", bobScope, "bobs")
	other := share
	other.ProjectHash = "other"
	kit.Must(t, st.AddShare(ctx, other))
	sees("bob, with whom ann shares something else", bobScope, "bobs")
}

// seesIn checks what a scope sees, in every method that takes one.
func seesIn(t *testing.T, st full, when string, scope server.Scope, want []string, users ...server.User) {
	t.Helper()
	expectNames(t, when+": Find", names(t, st, scope, server.SessionQuery{}), want...)
	expectNames(t, when+": Search", searched(t, st, scope, server.SearchQuery{Text: "needle"}), want...)
	ctx := t.Context()
	var groups, usage, drops []string
	groups = append(groups, kit.Each(groupsOf(t, st, scope), func(g server.Group) string { return ownerName(g.Owner, users...) })...)
	rows := kit.Try(st.Usage(ctx, scope, server.UsageQuery{By: []string{"session"}})).Must(t)
	usage = append(usage, kit.Each(rows, func(r server.UsageRow) string { return r.Session })...)
	rewrites := kit.Try(st.Drops(ctx, scope, server.DropQuery{Session: "", Limit: 100})).Must(t)
	drops = append(drops, kit.Each(rewrites, func(d server.Drop) string { return d.Session.SessionID })...)
	checkDropped(t, st, when, scope, rewrites)
	for what, got := range map[string][]string{"Groups": groups, "Usage": usage, "Drops": drops} {
		slices.Sort(got)
		expectNames(t, when+": "+what, got, want...)
	}
	for _, name := range []string{"anns", "bobs", "nobodys"} {
		snap, err := st.View(ctx, scope, server.Ref{SessionID: name})
		ok := slices.Contains(want, name)
		kit.Check(t, ok == (err == nil) && (ok || errors.Is(err, server.ErrNotFound)), "%s: View of %s: %v", when, name, err)
		if err == nil {
			kit.Equal(t, when+": View", snap.Session().SessionID, name)
			snap.Close()
		}
	}
}

func ownerName(id int64, users ...server.User) string {
	for _, u := range users {
		if u.ID == id {
			return u.Name + "s"
		}
	}
	return "nobodys"
}

// sameNames: one session's name with two owners, on two machines.
func (s suite) sameNames(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	for i, machine := range []string{"m1", "m2"} {
		for owner := range int64(2) {
			b := batch("s", object(0, fmt.Sprint(machine, owner+1)))
			b.Owner, b.Head.Machine = owner+1, machine
			b.Received = start.Add(time.Duration(i) * time.Hour)
			put(t, st, b)
		}
	}
	read := func(scope server.Scope, ref server.Ref) string {
		t.Helper()
		snap := kit.Try(st.View(ctx, scope, ref)).Must(t)
		defer snap.Close()
		return strings.Join(dump(t, snap, 0), " ")
	}
	one := "m1"
	for want, got := range map[string]string{
		"0:object:m22": read(all, server.Ref{SessionID: "s", Owner: 2}),
		"0:object:m21": read(server.Scope{User: 1}, server.Ref{SessionID: "s"}),
		"0:object:m12": read(server.Scope{User: 2}, server.Ref{SessionID: "s", Machine: &one}),
		"0:object:m11": read(all, server.Ref{SessionID: "s", Owner: 1, Machine: &one}),
		// Another's was heard later; one's own comes first, also for who sees all.
		"0:object:m21 ": read(server.Scope{All: true, User: 1}, server.Ref{SessionID: "s"}) + " ",
	} {
		kit.Equal(t, "read", got, want)
	}
	found, err := st.Find(ctx, all, server.SessionQuery{Page: server.Page{Limit: 9}})
	kit.Require(t, err == nil && len(found.List) == 4, "%d streams, %v", len(found.List), err)
	id := found.List[1].ID
	snap, err := st.View(ctx, server.Scope{User: found.List[1].Owner}, server.Ref{Stream: id})
	kit.Require(t, err == nil && snap.Session().ID == id, "by id: %v", err)
	snap.Close()
	kit.Err(t, "somebody else's by id", server.ErrNotFound)(st.View(ctx, server.Scope{User: 3}, server.Ref{Stream: id}))
}

func (s suite) filters(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	for i, name := range []string{"a", "b", "c"} {
		b := batch(name, object(0, "{}"))
		h := &b.Head
		h.ProjectHash, h.Project, h.Machine = "ph"+name, "ПРОЕКТ Proj-"+name, "m"+name
		b.Owner, b.Received = int64(i+1), start.Add(time.Duration(i)*time.Hour)
		put(t, st, b)
	}
	put(t, st, batch("a/agent-x", object(0, "{}")),
		func(b *server.Batch) { b.Head.Parent, b.Owner, b.Head.Machine = "a", 1, "ma" })
	for _, task := range lease(t, st) {
		save(t, st, task, server.Derivation{Summary: server.Summary{
			Title: "Über " + task.SessionID, FirstPrompt: "50%_off\nfor ALL", Models: []string{"m-" + task.SessionID, "both"}, Branch: "br/" + task.SessionID,
		}})
	}
	mb := "mb"
	tests := []struct {
		want string
		q    server.SessionQuery
	}{
		{"a b c", server.SessionQuery{}},
		{"a a/agent-x b c", server.SessionQuery{Agents: true}},
		{"a/agent-x", server.SessionQuery{Parent: "a"}},
		{"", server.SessionQuery{Parent: "b"}},
		{"b", server.SessionQuery{Project: "phb"}},
		{"c", server.SessionQuery{Project: "ПРОЕКТ Proj-c"}},
		{"b", server.SessionQuery{Machine: &mb}},
		{"c", server.SessionQuery{User: 3}},
		{"a", server.SessionQuery{Model: "m-a"}},
		{"a b c", server.SessionQuery{Model: "both"}},
		{"", server.SessionQuery{Model: "m-"}},
		{"b", server.SessionQuery{Branch: "br/b"}},
		{"b c", server.SessionQuery{Since: start.Add(time.Hour)}},
		{"a", server.SessionQuery{Before: start.Add(time.Hour)}},
		{"a", server.SessionQuery{Until: start.Add(time.Hour)}},
		{"a b c", server.SessionQuery{Text: "ÜBER"}},
		{"b", server.SessionQuery{Text: "über B"}},
		{"c", server.SessionQuery{Text: "proj-C"}},
		{"c", server.SessionQuery{Text: "Проект PROJ-c"}},
		{"a b c", server.SessionQuery{Text: "проект"}},
		{"a b c", server.SessionQuery{Text: "50%_off for"}},
		{"", server.SessionQuery{Text: "50__off"}},
		{"", server.SessionQuery{Text: "50%off"}},
	}
	for _, test := range tests {
		expectNames(t, fmt.Sprintf("%+v", test.q), names(t, st, all, test.q), strings.Fields(test.want)...)
	}
	for _, text := range hostile {
		for _, q := range []server.SessionQuery{
			{Project: text}, {Machine: &text}, {Model: text}, {Branch: text}, {Parent: text},
		} {
			expectNames(t, fmt.Sprintf("%+v", q), names(t, st, all, q))
		}
		names(t, st, all, server.SessionQuery{Text: text}) // finds what it finds, and breaks nothing
		kit.Err(t, "View of "+text,
			server.ErrNotFound)(st.View(ctx, all, server.Ref{SessionID: text, Epoch: text, Machine: &text}))
		kit.Err(t, "Drops of "+text, nil)(st.Drops(ctx, all, server.DropQuery{Session: text, Limit: 5}))
		kit.Err(t, "page "+text,
			server.ErrBadPage)(st.Find(ctx, all, server.SessionQuery{Page: server.Page{Limit: 5, After: text}}))
	}
}

// paging: pages put together are the whole, in order, while sessions come in and others are heard again.
func (s suite) paging(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	const sessions = 25
	for i := range sessions {
		b := batch(fmt.Sprintf("s%02d", i), object(0, "{}"))
		b.Received = start.Add(time.Duration(i/3) * time.Second) // some at one time
		put(t, st, b)
	}
	for _, recent := range []bool{false, true} {
		var got []string
		q := server.SessionQuery{Page: server.Page{Limit: 4, Recent: recent}}
		for page := 0; ; page++ {
			found := kit.Try(st.Find(ctx, all, q)).Must(t)
			for _, x := range found.List {
				if strings.HasPrefix(x.SessionID, "s") {
					got = append(got, x.SessionID)
				}
			}
			if q.After = found.Next; q.After == "" {
				break
			}
			put(t, st, batch(fmt.Sprint("new", recent, page), object(0, "{}")),
				func(b *server.Batch) { b.Received = start.Add(time.Hour) })
		}
		var want []string
		for i := range sessions {
			want = append(want, fmt.Sprintf("s%02d", i))
		}
		if recent {
			slices.Reverse(want)
		}
		kit.Equal(t, fmt.Sprintf("recent %v", recent), got, want)
	}
	for _, after := range []string{"x", "1-", "-", "1-2-3", "9999999999999999999"} {
		for _, recent := range []bool{false, true} {
			_, err := st.Find(ctx, all, server.SessionQuery{Page: server.Page{Limit: 4, After: after, Recent: recent}})
			kit.Check(t, errors.Is(err, server.ErrBadPage), "after %q: %v", after, err)
		}
	}
}

func (s suite) groups(t *testing.T) {
	st := s.open(t)
	step := func(session, machine, parent, host string, at time.Duration, offset int64) {
		b := batch(session, object(0, "{}"))
		b.Owner, b.Received = 1, start.Add(at)
		b.Head.Machine, b.Head.Parent, b.Head.Host, b.Head.ProjectHash, b.Head.Project = machine, parent, host, "ph", "p"+host
		b.Head.EndOffset = offset
		put(t, st, b)
	}
	step("a", "m1", "", "old", 0, 10)
	step("b", "m1", "", "new", time.Hour, 20)
	step("a/agent-1", "m1", "a", "old", time.Minute, 5)
	step("a", "m2", "", "other", 2*time.Hour, 0)
	rewound := batch("b", object(0, "[]"))
	rewound.Owner, rewound.Received = 1, start.Add(time.Hour)
	rewound.Head.Machine, rewound.Head.Generation, rewound.Head.EndOffset = "m1", 1, 7
	put(t, st, rewound)
	list := groupsOf(t, st, all)
	kit.Require(t, len(list) == 2, "%+v", list)
	want := server.Group{ProjectHash: "ph", Project: "pnew", Machine: "m1", Host: "new", Owner: 1, Sessions: 2, Bytes: 10 + 7 + 5, Last: start.Add(time.Hour)}
	kit.Check(t, list[0].Machine == "m2" && list[0].Bytes == 3 && list[1] == want, "%+v\nwant %+v", list, want)
}

// received: to the batch, also when bytes are replaced.
func (s suite) received(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	for i := range int64(3) {
		put(t, st, batch("s", object(i, "x")),
			func(b *server.Batch) { b.Received = start.Add(time.Duration(i) * time.Minute) })
	}
	b := batch("s", object(0, "x"), object(1, "y")) // 0 again, 1 replaced
	b.Received = start.Add(time.Hour)
	put(t, st, b)
	snap := openSession(t, st, "s")
	stream, epoch := snap.Session().ID, snap.Epochs()[0].ID
	for line, want := range map[int64]time.Duration{0: 0, 1: time.Hour, 2: 2 * time.Minute} {
		at, err := st.Received(ctx, stream, epoch, 0, line)
		kit.Check(t, err == nil && at.Equal(start.Add(want)), "line %d at %v, %v", line, at, err)
	}
	for _, where := range [][4]int64{{stream, epoch, 0, 3}, {stream, epoch, 1, 0}, {stream, epoch + 1, 0, 0}, {stream + 1, epoch, 0, 0}} {
		kit.Err(t, fmt.Sprint(where), server.ErrNotFound)(st.Received(ctx, where[0], where[1], where[2], where[3]))
	}
}

// changes: each listener receives each stored batch; a slow one delays no other.
func (s suite) changes(t *testing.T) {
	st := s.open(t)
	ch := kit.Try(st.Changes(t.Context())).Must(t)
	kit.Try(st.Changes(t.Context())).Must(t) // never read
	put(t, st, batch("s", object(3, "x"), object(4, "y")), func(b *server.Batch) { b.Owner, b.Head.ProjectHash = 7, "ph" })
	c := <-ch
	kit.Check(t, c.SessionID == "s" && c.Machine == "m" && c.Owner == 7 && c.Project == "ph" && c.From == 3 && c.To == 5 &&
		c.Stream != 0 && c.At.Equal(start), "%+v", c)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range int64(200) {
				kit.Should(t, st.Put(t.Context(), batch(fmt.Sprint("w", w), object(i, "x"))))
			}
		})
	}
	wg.Wait()
}
