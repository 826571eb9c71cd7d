//go:build unix

package postgres

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/pgtest"
	"github.com/ccship/ccship/server/store/sqlstore"
)

func openPg(t *testing.T, url string) *Store {
	t.Helper()
	s := kit.Try(Open(t.Context(), url, sqlstore.Opening{})).Must(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func pgBatch(session, raw string) *server.Batch {
	return &server.Batch{Head: server.Head{SessionID: session}, Lines: []server.Line{{Raw: []byte(raw)}}, Received: time.Now()}
}

// TestPostgresWaitsForItsDisk: a database set up to acknowledge before its log is on disk does not.
func TestPostgresWaitsForItsDisk(t *testing.T) {
	c := pgtest.New(t, pgtest.Settings{"synchronous_commit = off"})
	s := openPg(t, c.Database(t))
	kit.Check(t, len(s.Notes()) == 0, "notes about a sound database: %q", s.Notes())
	for setting, want := range map[string]string{"synchronous_commit": "on", "fsync": "on"} {
		var got string
		err := s.pool.QueryRow(t.Context(), `SELECT current_setting($1)`, setting).Scan(&got)
		kit.Check(t, err == nil && got == want, "%s is %q (%v), want %q", setting, got, err, want)
	}
	kit.Has(t, "notes", strings.Join(openPg(t, pgtest.Shared(t).Database(t)).Notes(), "\n"), "fsync")
}

// TestPostgresUnconfirmed: when the wait for the synchronous standby is cut short PostgreSQL says "committed". It is
// not where it should be, and Put must not say that it is.
func TestPostgresUnconfirmed(t *testing.T) {
	c := pgtest.New(t, nil)
	s := openPg(t, c.Database(t))
	s.patience = time.Second
	kit.Must(t, s.Put(t.Context(), pgBatch("before", "x")))
	kit.Must(t, c.Configure("synchronous_standby_names = 'nobody'"))
	waitUntil(t, "the setting is in force", func() bool { return c.Exec(t, "postgres", "SHOW synchronous_standby_names") == "nobody" })
	err := s.Put(t.Context(), pgBatch("given up", "x"))
	kit.Check(t, err != nil, "Put gave up waiting, and says that it is stored")
	s.patience = pgPatience
	answer := make(chan error, 1)
	go func() { answer <- s.Put(t.Context(), pgBatch("cancelled", "x")) }()
	for _, what := range []string{"Put waits for the standby", "Put, cancelled, waits again"} {
		waitUntil(t, what, func() bool {
			select {
			case err := <-answer:
				t.Fatalf("no standby has it, and Put answers %v", err)
			default:
			}
			return c.Exec(t, "postgres", `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`) == "t"
		})
	}
	kit.Must(t, c.Configure("synchronous_standby_names = ''"))
	kit.Should(t, <-answer)
}

// TestPostgresGone: without a database Put gives up in the end, in one line; with it again it goes on.
func TestPostgresGone(t *testing.T) {
	c := pgtest.New(t, nil)
	s := openPg(t, c.Database(t))
	s.patience = 300 * time.Millisecond
	kit.Must(t, c.Stop("immediate"))
	err := s.Put(t.Context(), pgBatch("s", "x"))
	kit.Check(t, err != nil && !strings.Contains(err.Error(), "\n"), "without a database: %v", err)
	kit.Must(t, c.Start())
	s.patience = pgPatience
	kit.Should(t, s.Put(t.Context(), pgBatch("s", "x")))
}

// TestPostgresOneStreamTwice: of two batches of one stream in a group, the later one is not stored when the database
// takes the earlier one no more.
func TestPostgresOneStreamTwice(t *testing.T) {
	at := pgtest.Shared(t).Database(t)
	s := openPg(t, at)
	kit.Must(t, s.Put(t.Context(), pgBatch("s", "x")))
	s.patience = 2 * time.Second
	holder := kit.Try(pgx.Connect(t.Context(), at)).Must(t)
	defer func() { _ = holder.Close(context.Background()) }()
	kit.Try(holder.Exec(t.Context(), `BEGIN; LOCK TABLE streams`)).Must(t)
	var group []*lines.Job
	for i := range 2 {
		b := pgBatch("s", "y")
		b.Lines[0].Index = int64(1 + i)
		group = append(group, &lines.Job{Batch: b, Done: make(chan error, 1)})
	}
	go s.writeGroup(slices.Clone(group))
	kit.Check(t, <-group[0].Done != nil, "stored in a table that another has locked")
	kit.Try(holder.Exec(t.Context(), `ROLLBACK`)).Must(t)
	kit.Check(t, <-group[1].Done != nil, "the later batch is stored without the earlier one")
}

func waitUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !done(); {
		kit.Require(t, !time.Now().After(end), "never: %s", what)
		select {
		case <-t.Context().Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestReplica: a standby answers lists; who stored something sees it at once, also while the standby stands still, and
// everything is answered when it is gone.
func TestReplica(t *testing.T) {
	one := pgtest.New(t, pgtest.Fast)
	two := one.Standby(t, "two")
	s := kit.Try(Open(t.Context(), one.URL("postgres"), sqlstore.Opening{})).Must(t)
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

// TestForgetHoldsUpNobody: while Forget looks for a session's streams, lines of others are stored.
func TestForgetHoldsUpNobody(t *testing.T) {
	c := pgtest.Shared(t)
	at := c.Lodger(t, "forgetter")
	s := openPg(t, at)
	put := func(session string) {
		t.Helper()
		err := s.Put(t.Context(), pgBatch(session, "x"))
		kit.Require(t, err == nil, "%s: %v", session, err)
	}
	put("gone")
	u := kit.Try(url.Parse(at)).Must(t)
	// The search for streams, and nothing else, waits for a lock that the test holds.
	const gate = "7077"
	c.Exec(t, strings.TrimPrefix(u.Path, "/"), `
CREATE FUNCTION hold() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
  IF current_query() LIKE '%substr(s.session_id, 1%' THEN PERFORM pg_advisory_xact_lock_shared(`+gate+`); END IF;
  RETURN true; END $$;
ALTER TABLE streams ENABLE ROW LEVEL SECURITY;
ALTER TABLE streams FORCE ROW LEVEL SECURITY;
CREATE POLICY held ON streams USING (hold()) WITH CHECK (true)`)
	gatekeeper := connectTo(t, at)
	exec := func(sql string) {
		t.Helper()
		kit.Try(gatekeeper.Exec(t.Context(), sql)).Must(t)
	}
	exec(`SELECT pg_advisory_lock(` + gate + `)`)
	done := make(chan error, 1)
	go func() {
		_, err := s.Forget(context.WithoutCancel(t.Context()), server.Scope{All: true}, "gone", 0, time.Now())
		done <- err
	}()
	waitUntil(t, "Forget looks for streams", func() bool {
		n := 0
		err := gatekeeper.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
AND objid = `+gate).Scan(&n)
		return err == nil && n == 1
	})
	for i := range 3 {
		put("other" + strconv.Itoa(i))
	}
	exec(`SELECT pg_advisory_unlock(` + gate + `)`)
	kit.Must(t, <-done)
	kit.Err(t, "a line of what is forgotten", server.ErrForgotten)(s.Put(t.Context(), pgBatch("gone", "x")))
}

func connectTo(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn := kit.Try(pgx.Connect(t.Context(), url)).Must(t)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// TestClasses: a transaction has the limits of its class, and the connection those of a page after it.
func TestClasses(t *testing.T) {
	s := openPg(t, pgtest.Shared(t).Database(t))
	conn := kit.Try(s.pool.Acquire(t.Context())).Must(t)
	defer conn.Release()
	limits := func(q interface {
		QueryRow(context.Context, string, ...any) pgx.Row
	}) (got string) {
		t.Helper()
		kit.Must(t, q.QueryRow(t.Context(), `SELECT current_setting('statement_timeout') || ' ' || current_setting('lock_timeout')`).
			Scan(&got))
		return got
	}
	for want, c := range map[string]class{"1min 20s": classIngest, "5min 5s": classBackground, "5s 1s": classBarrier} {
		tx := kit.Try(conn.BeginTx(t.Context(), s.beginWrite(c))).Must(t)
		kit.Equal(t, fmt.Sprintf("%+v", c), limits(tx), want)
		kit.Must(t, tx.Rollback(t.Context()))
	}
	kit.Equal(t, "of a page", limits(conn), "30s 5s")
}

// TestNothingIsCompiled: a table without a key is read within a transaction of writes without compiling the statement,
// which takes a thousand times as long as to run it.
func TestNothingIsCompiled(t *testing.T) {
	s := openPg(t, pgtest.Shared(t).Database(t))
	tx := kit.Try(s.pool.BeginTx(t.Context(), s.beginWrite(classBackground))).Must(t)
	defer func() { _ = tx.Rollback(t.Context()) }()
	kit.Try(tx.Exec(t.Context(), byKey)).Must(t)
	rows := kit.Try(tx.Query(t.Context(), `EXPLAIN ANALYZE SELECT secret FROM store_identity`)).Must(t)
	plan := kit.Try(pgx.CollectRows(rows, pgx.RowTo[string])).Must(t)
	text := strings.Join(plan, "\n")
	kit.Check(t, !strings.Contains(text, "JIT"), "%v", text)
}
