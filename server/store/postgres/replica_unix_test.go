//go:build unix

package postgres

import (
	"fmt"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/pgtest"
)

// TestReplica: a standby answers lists; who stored something sees it at once, also while the standby stands still, and
// everything is answered when it is gone.
func TestReplica(t *testing.T) {
	one := pgtest.New(t, pgtest.Fast)
	two := one.Standby(t, "two")
	s := kit.Try(Open(t.Context(), one.URL("postgres"))).Must(t)
	r := kit.Try(WithReplica(t.Context(), s, two.URL("postgres"))).Must(t)
	t.Cleanup(func() { _ = r.Close() })
	const ann, ben = 5, 6
	stored := 0
	put := func() {
		t.Helper()
		stored++
		b := pgBatch(fmt.Sprint("s", stored), "x")
		b.Owner = ann
		kit.Must(t, r.Put(t.Context(), b))
	}
	sees := func(user int64) (n int, byReplica bool) {
		t.Helper()
		before := r.answers.Load()
		found := kit.Try(r.Find(t.Context(), server.Scope{All: true, User: user}, server.SessionQuery{Page: server.Page{Limit: 100}})).Must(t)
		return len(found.List), r.answers.Load() > before
	}
	for _, user := range []int64{ann, ben} {
		waitUntil(t, "the replica answers", func() bool { _, by := sees(user); return by })
	}
	for range 20 { // whatever the replica has by now
		put()
		n, _ := sees(ann)
		kit.Require(t, n == stored, "ann stored %d sessions and sees %d", stored, n)
	}
	two.Exec(t, "postgres", "SELECT pg_wal_replay_pause()")
	put()
	if n, by := sees(ann); n != stored || by {
		t.Errorf("of %d sessions ann sees %d beside a replica that stands still; it answered: %v", stored, n, by)
	}
	waitUntil(t, "nobody is answered by a replica that stands still", func() bool { _, by := sees(ben); return !by })
	n, _ := sees(ben)
	kit.Check(t, n == stored, "ben sees %d of %d sessions", n, stored)
	two.Exec(t, "postgres", "SELECT pg_wal_replay_resume()")
	waitUntil(t, "the replica answers ann again", func() bool { _, by := sees(ann); return by })
	n, _ = sees(ann)
	kit.Check(t, n == stored, "ann sees %d of %d sessions", n, stored)
	kit.Must(t, two.Kill())
	put()
	for _, user := range []int64{ann, ben} {
		n, _ := sees(user)
		kit.Check(t, n == stored || user != ann, "without the replica %d of %d sessions are seen", n, stored)
	}
	waitUntil(t, "the primary answers everybody", func() bool { n, by := sees(ben); return n == stored && !by })
}
