package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

func keepCommit(t *testing.T, st full, x server.Session, commit string, at time.Time, lines int64) {
	t.Helper()
	share := server.CommitShare{Owner: x.Owner, Stream: x.ID, Commit: commit, At: at, Added: 9, Lines: lines}
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
		b := batch(name, object(0, "{}"))
		b.Owner, b.Head.ProjectHash = ann, "of "+name
		put(t, st, b)
	}
	var a, b server.Session
	opened(t, st, "a", func(snap server.Snapshot) { a = snap.Session() })
	opened(t, st, "b", func(snap server.Snapshot) { b = snap.Session() })
	has := func(scope server.Scope, x server.Session, want string) {
		t.Helper()
		list, err := st.Commits(t.Context(), scope, x.Owner, x.ID)
		var got []string
		for _, c := range list {
			got = append(got, fmt.Sprintf("%s:%d/%d", c.Commit, c.Lines, c.Added))
		}
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
