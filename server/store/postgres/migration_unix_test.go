//go:build unix

package postgres

import (
	"context"
	"database/sql"
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
	"github.com/ccship/ccship/server/store/postgres/migrations"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// released is the schema of the version before.
const released = 8

// nextSchema are the migrations and one more.
func nextSchema(t *testing.T, text string) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	names, err := fs.Glob(migrations.Files(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b, err := fs.ReadFile(migrations.Files(), name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: b}
	}
	files["99999_next.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + text)}
	return files
}

// migrationIn is a migration of a database to what files make.
func migrationIn(t *testing.T, url string, files fs.FS, how sqlstore.Opening) *migrations.Migration {
	t.Helper()
	m, _ := migrationOn(t, url, files, how)
	return m
}

// migrationOn is migrationIn with the connections it uses.
func migrationOn(t *testing.T, url string, files fs.FS, how sqlstore.Opening) (*migrations.Migration, *sql.DB) {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDB(*migrations.Configure(config))
	t.Cleanup(func() { _ = db.Close() })
	m, err := migrations.Of(db, files, false, how)
	if err != nil {
		t.Fatal(err)
	}
	return m, db
}

// TestMigratesBesideTraffic: while somebody reads a table for long, its migration waits, and lines are stored all the
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
	m := migrationIn(t, at, nextSchema(t, "-- beside: yes\nALTER TABLE streams ADD COLUMN next bigint NOT NULL DEFAULT 0;"),
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
			case <-time.After(time.Minute):
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
AND datname = current_database()`, migrations.ServingName()).Scan(&n)
		return err == nil && n == 1
	})
	files := nextSchema(t, "SELECT 1;")
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

// TestMigrationsMoveNoRows: migrations from the version before neither write the rows of the tables that grow, but for
// their owner, nor rewrite their files, so they hold their locks for as long whatever the size. The test sees those that
// do.
func TestMigrationsMoveNoRows(t *testing.T) {
	c := pgtest.New(t, pgtest.Fast)
	if wrong := moves(t, c, migrations.Files()); len(wrong) != 0 {
		t.Error(wrong)
	}
	if !testing.Short() {
		wrong := moves(t, c, nextSchema(t, "UPDATE streams SET host = 'x'; ALTER TABLE superseded ALTER COLUMN line TYPE numeric;"))
		if len(wrong) != 2 {
			t.Errorf("a migration that writes rows and one that rewrites a table: %q", wrong)
		}
	}
}

// moves fills a database of the version before, migrates it, and says what that moved.
func moves(t *testing.T, c *pgtest.Cluster, to fs.FS) (wrong []string) {
	t.Helper()
	at := c.Database(t)
	m, db := migrationOn(t, at, to, sqlstore.Opening{})
	db.SetMaxOpenConns(1) // its one session counts what it did, and tells once it ends
	if err := m.UpTo(t.Context(), released); err != nil {
		t.Fatal(err)
	}
	base := strings.TrimPrefix(at, "postgres:///")
	base = base[:strings.IndexByte(base, '?')]
	c.Exec(t, base, fillReleased)
	count := func(tables string) string {
		return c.Exec(t, base, `SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_all_tables WHERE relname ~ '`+tables+`'`)
	}
	waitUntil(t, "what filled the tables is counted", func() bool { return count("^"+growing) == "2000" })
	before := c.Exec(t, base, `SELECT string_agg(relname || ' ' || pg_relation_filenode(oid), ',' ORDER BY relname) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname ~ '^`+growing+`'`)
	if err := m.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `INSERT INTO tickets (ticket, "user", until) VALUES ('x', 1, 1)`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "what the migration did is counted", func() bool { return count("^tickets$") == "1" })
	// Each row of the three below streams is written once, to get its owner, beside servers that go on.
	if n := count("^" + growing); n != "3500" {
		wrong = append(wrong, "migrations write rows: "+n+" instead of 2000 and 1500")
	}
	for _, was := range strings.Split(before, ",") {
		name, node, _ := strings.Cut(was, " ")
		now := c.Exec(t, base, `SELECT pg_relation_filenode(oid) FROM pg_class WHERE relname = '`+name+`'`)
		if now != "" && now != node {
			wrong = append(wrong, "a migration rewrites the file of "+name)
		}
	}
	return wrong
}

// growing are the tables that grow with what is stored.
const growing = `(lines|texts|answers|moments|superseded|streams|epochs|generations)($|_[0-9])`

// fillReleased fills a database of the version before with 2 000 rows.
const fillReleased = `INSERT INTO users (id, name, role, created) VALUES (1, 'ann', 'owner', 1);
INSERT INTO streams (owner, session_key, machine_key, session_id, machine, project_hash, host, project, cwd, path, parent,
  first_received, last_received)
SELECT 1, decode(md5(g::text), 'hex'), '\x00', 's' || g, 'm', 'p', 'h', 'p', '/', '/', '', 1, 1 FROM generate_series(1, 500) g;
INSERT INTO lines (stream, epoch, generation, line, kind, raw, received)
SELECT id, 1, 0, 0, 0, '\x7b7d', 1 FROM streams;
INSERT INTO epochs (stream, rank, name, name_key, first_seen) SELECT id, 1, 'e', '\x01', 1 FROM streams;
INSERT INTO generations (stream, epoch, generation, rewound_to, end_line, end_offset, eof_newline, bytes, stored_to, first_seen)
SELECT id, 1, 0, 0, 1, 3, true, 0, 1, 1 FROM streams`

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
  IF current_query() LIKE '%starts_with(s.session_id%' THEN PERFORM pg_advisory_xact_lock_shared(`+gate+`); END IF;
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
