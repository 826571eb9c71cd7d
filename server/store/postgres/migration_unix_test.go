//go:build unix

package postgres

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/pgtest"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// nextSchema is a migration behind the schema.
func nextSchema(text string) fs.FS {
	return fstest.MapFS{"99999_next.sql": &fstest.MapFile{Data: []byte("-- +goose Up\n" + text)}}
}

// migrationIn is a migration of a database to what files make.
func migrationIn(t *testing.T, url string, files fs.FS, how sqlstore.Opening) *migration {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDB(*Configure(config))
	t.Cleanup(func() { _ = db.Close() })
	m, err := of(db, files, false, how)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMigratesBesideTraffic: while a reader holds a table for long, its migration waits, and lines are stored all the
// same: nobody stands in a queue behind the migration. It is made once the table is free.
func TestMigratesBesideTraffic(t *testing.T) {
	at := pgtest.Shared(t).Database(t)
	s := openPg(t, at)
	reader, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Exec(t.Context(), `SELECT count(*) FROM streams`); err != nil {
		t.Fatal(err)
	}
	waits, done := make(chan string, 1000), make(chan error, 1)
	m := migrationIn(t, at, nextSchema("-- beside: yes\nALTER TABLE streams ADD COLUMN next bigint NOT NULL DEFAULT 0;"),
		sqlstore.Opening{Say: func(text string) {
			select {
			case waits <- text:
			default:
			}
		}})
	go func() { done <- m.Run(t.Context()) }()
	for range 3 {
		for text := ""; !strings.Contains(text, "tries again"); {
			select {
			case text = <-waits:
			case err := <-done:
				t.Fatalf("the migration ended while a reader held the table: %v", err)
			case <-time.After(5 * time.Minute):
				t.Fatal("the migration does not give up the lock")
			}
		}
		if err := s.Put(t.Context(), pgBatch("beside", "x")); err != nil {
			t.Fatalf("a line beside a migration that waits: %v", err)
		}
	}
	if err := reader.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), pgBatch("after", "x")); err != nil {
		t.Errorf("a line after the migration: %v", err)
	}
}

// TestOlderServers: what would break servers that are running is not made while they run; what would not, is.
func TestOlderServers(t *testing.T) {
	at := pgtest.Shared(t).Database(t)
	s := openPg(t, at)
	if _, err := s.Changes(t.Context()); err != nil { // serves
		t.Fatal(err)
	}
	waitUntil(t, "the server listens", func() bool {
		n := 0
		err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1
AND datname = current_database()`, servingName()).Scan(&n)
		return err == nil && n == 1
	})
	files := nextSchema("SELECT 1;")
	if err := migrationIn(t, at, files, sqlstore.Opening{}).Run(t.Context()); !errors.Is(err, sqlstore.ErrOlderServes) {
		t.Errorf("beside a server that it may break: %v", err)
	}
	waits, done := make(chan string, 1000), make(chan error, 1)
	waiting := migrationIn(t, at, files, sqlstore.Opening{Wait: true, Say: func(text string) {
		select {
		case waits <- text:
		default:
		}
	}})
	go func() { done <- waiting.Run(t.Context()) }()
	if text := <-waits; !strings.Contains(text, "have stopped") {
		t.Errorf("it says %q", text)
	}
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	case <-waits: // looked again
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("after the older server stopped: %v", err)
	}
	if _, err := Open(t.Context(), at); !errors.Is(err, sqlstore.ErrNewer) {
		t.Errorf("a server that starts on a newer schema: %v", err)
	}
}

// TestForgetHoldsUpNobody: while Forget looks for a session's streams, lines of others are stored.
func TestForgetHoldsUpNobody(t *testing.T) {
	c := pgtest.Shared(t)
	at := c.Lodger(t, "forgetter")
	s := openPg(t, at)
	put := func(session string) {
		t.Helper()
		if err := s.Put(t.Context(), pgBatch(session, "x")); err != nil {
			t.Fatalf("%s: %v", session, err)
		}
	}
	put("gone")
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
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
		if _, err := gatekeeper.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
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
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), pgBatch("gone", "x")); !errors.Is(err, server.ErrForgotten) {
		t.Errorf("a line of what is forgotten: %v", err)
	}
}

func connectTo(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// TestClasses: a transaction has the limits of its class, and the connection those of a page after it.
func TestClasses(t *testing.T) {
	s := openPg(t, pgtest.Shared(t).Database(t))
	conn, err := s.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	limits := func(q interface {
		QueryRow(context.Context, string, ...any) pgx.Row
	}) (got string) {
		t.Helper()
		err := q.QueryRow(t.Context(), `SELECT current_setting('statement_timeout') || ' ' || current_setting('lock_timeout')`).
			Scan(&got)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for want, c := range map[string]class{"1min 20s": classIngest, "5min 5s": classBackground, "5s 1s": classBarrier} {
		tx, err := conn.BeginTx(t.Context(), s.beginWrite(c))
		if err != nil {
			t.Fatal(err)
		}
		if got := limits(tx); got != want {
			t.Errorf("%+v: %s, want %s", c, got, want)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := limits(conn); got != "30s 5s" {
		t.Errorf("of a page: %s", got)
	}
}
