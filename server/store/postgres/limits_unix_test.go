//go:build unix

package postgres

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/pgtest"
)

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
