//go:build unix

package migrations

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/ccship/ccship/server/store/pgtest"
	"github.com/ccship/ccship/server/store/sqlstore"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

func migrationIn(t *testing.T, at string, how sqlstore.Opening) (*Migration, *sql.DB) {
	t.Helper()
	config, err := pgx.ParseConfig(at)
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDB(*Configure(config))
	t.Cleanup(func() { _ = db.Close() })
	m, err := New(db, false, how)
	if err != nil {
		t.Fatal(err)
	}
	return m, db
}

func list(t *testing.T, db *sql.DB, query string, args ...any) (out []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%v in %s", err, query)
	}
	defer rows.Close()
	for rows.Next() {
		var x string
		if err := rows.Scan(&x); err != nil {
			t.Fatal(err)
		}
		out = append(out, x)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func exec(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%v in %s", err, query)
	}
}

// withoutOwner are the keys, and the tables, of a database that can't be spread by owner.
func withoutOwner(t *testing.T, db *sql.DB) []string {
	t.Helper()
	spare := "'" + strings.Join(reference, "', '") + "'"
	wrong := list(t, db, `
SELECT 'key ' || x.indexrelid::regclass || ' of ' || x.indrelid::regclass
FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid
LEFT JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = x.indkey[0]
WHERE x.indisunique AND c.relnamespace = 'public'::regnamespace AND c.relname NOT IN (`+spare+`)
  AND a.attname IS DISTINCT FROM 'owner' ORDER BY 1`)
	wrong = append(wrong, list(t, db, `
SELECT 'table ' || c.relname FROM pg_class c
WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace AND c.relname NOT IN (`+spare+`)
  AND NOT EXISTS (SELECT FROM pg_index x WHERE x.indrelid = c.oid
    AND (SELECT attname FROM pg_attribute WHERE attrelid = c.oid AND attnum = x.indkey[0]) = 'owner') ORDER BY 1`)...)
	return append(wrong, list(t, db, `
SELECT 'reference ' || f.conname FROM pg_constraint f JOIN pg_class c ON c.oid = f.conrelid
JOIN pg_class r ON r.oid = f.confrelid
WHERE f.contype = 'f' AND c.relnamespace = 'public'::regnamespace AND r.relname NOT IN (`+spare+`) AND (
  (SELECT attname FROM pg_attribute WHERE attrelid = f.conrelid AND attnum = f.conkey[1]) <> 'owner' OR
  (SELECT attname FROM pg_attribute WHERE attrelid = f.confrelid AND attnum = f.confkey[1]) <> 'owner') ORDER BY 1`)...)
}

// TestKeysBeginWithOwner: all that grows can be spread by owner. The test sees what can't.
func TestKeysBeginWithOwner(t *testing.T) {
	m, db := migrationIn(t, pgtest.Shared(t).Database(t), sqlstore.Opening{})
	if err := m.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if wrong := withoutOwner(t, db); len(wrong) != 0 {
		t.Error(strings.Join(wrong, "\n"))
	}
	named := strings.Split(spread, "|")
	for _, name := range list(t, db, `SELECT relname FROM pg_class
WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace`) {
		if !slices.Contains(named, name) && !slices.Contains(reference, name) {
			t.Errorf("table %s is neither spread by owner nor a reference table", name)
		}
	}
	exec(t, db, `CREATE TABLE wrong (id bigint PRIMARY KEY, owner bigint, UNIQUE (owner, id));
CREATE TABLE bare (id bigint); CREATE TABLE leads (owner bigint, id bigint UNIQUE REFERENCES wrong (id))`)
	want := "key leads_id_key of leads, key wrong_pkey of wrong, table bare, table leads, reference leads_id_fkey"
	if got := strings.Join(withoutOwner(t, db), ", "); got != want {
		t.Errorf("the test sees %s, want %s", got, want)
	}
}

// before is the schema of the version before owners were in every row.
const before = 15

// fillBefore are rows of two owners, and of none.
const fillBefore = `
INSERT INTO users (id, name, role, created) VALUES (1, 'ann', 'owner', 1), (2, 'bob', 'member', 1);
INSERT INTO streams (owner, session_key, machine_key, session_id, machine, project_hash, host, project, cwd, path, parent,
  first_received, last_received)
SELECT g % 3, decode(md5(g::text), 'hex'), '\x00', 's' || g, 'm', 'p', 'h', 'p', '/', '/', '', 1, 1 FROM generate_series(1, 600) g;
INSERT INTO epochs (stream, rank, name, name_key, first_seen) SELECT id, 1, 'e', '\x01', 1 FROM streams;
INSERT INTO generations (stream, epoch, generation, rewound_to, end_line, end_offset, eof_newline, bytes, stored_to, first_seen)
SELECT id, 1, 0, 0, 1, 3, true, 0, 1, 1 FROM streams;
INSERT INTO lines (stream, epoch, generation, line, kind, raw, received)
SELECT id, 1, 0, n, 0, '\x7b7d', 1 FROM streams, generate_series(0, 4) n;
INSERT INTO superseded (stream, epoch, generation, line, received, replaced, kind, raw) SELECT id, 1, 0, 0, 1, 2, 0, 'x' FROM streams;
INSERT INTO folds (stream, epoch, generation, line, format, state) SELECT id, 1, 0, 1, 1, '' FROM streams;
INSERT INTO facts SELECT id, 't', '', '', '', '', '', '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM streams;
INSERT INTO drops SELECT id, 1, 0, 0, 0, 0 FROM streams;
INSERT INTO moments SELECT id, 0, 0, 'prompt', '{}' FROM streams;
INSERT INTO masked_lines SELECT id, 1, 0, 0 FROM streams;
INSERT INTO maskings SELECT id, 1, 1, 1, 0, 0 FROM streams;
INSERT INTO artifact_epochs SELECT id, 1, 'e', '\x01', 1 FROM streams;
INSERT INTO checkpoints (stream, id, rank, port_id, tokens_used, token_budget, cause, context_hash, summary, active_files,
  created, generation, line, received) SELECT id, 'c', 1, '', 0, 0, '', '', 'sum', '[]', 1, 0, 0, 1 FROM streams;
INSERT INTO documents (stream, path_key, path, linked, added_at, added_by, unlinked_at, link_rank, link_version, link_at)
SELECT id, '\x01', 'a.md', 1, 1, '', 0, 1, 1, 1 FROM streams;
INSERT INTO document_versions (document, rank, n, change, author, at, size, sha256, too_large, line, received)
SELECT id, 1, 1, 'linked', '', 1, 0, '\x01', 0, -1, 1 FROM documents;
INSERT INTO blobs (owner, sha256, size, have, stored, touched, tries) SELECT DISTINCT owner, '\x01'::bytea, 1, 1, 1, 1, 0 FROM streams;
INSERT INTO blob_chunks SELECT id, 0, 'x' FROM blobs;
INSERT INTO blob_refs SELECT id, '\x01', 'a', '\x01', '', 1, 1 FROM streams;
INSERT INTO link_requests (id, stream, path, link, asked_by, asked, state, reason, answered)
SELECT 'w' || id, id, 'a.md', 1, 1, 1, 'waiting', '', 0 FROM streams;
INSERT INTO marks SELECT 1, id, 1, '', '', '', 1 FROM streams;
INSERT INTO share_links (hash, stream, maker, "key", created, until) SELECT decode(md5(id::text), 'hex'), id, 1, 0, 1, 2 FROM streams`

// storeBefore is what a server of the version before runs for two lines, of which it has one.
const storeBefore = `
INSERT INTO streams AS s (session_key, owner, machine_key, session_id, machine, project_hash, host, project, cwd,
  path, parent, first_received, last_received) VALUES (decode(md5($1::text), 'hex'), 2, '\x00', 's', 'm', '', '', '', '', '', '', 5, 5)
ON CONFLICT (session_key, owner, machine_key) DO UPDATE SET version = s.version + 1, last_received = 5;
INSERT INTO epochs (stream, rank, name, name_key, first_seen)
SELECT id, 1, 'e', '\x01', 1 FROM streams WHERE session_key = decode(md5($1::text), 'hex') ON CONFLICT (stream, name_key) DO NOTHING;
INSERT INTO generations AS g (stream, epoch, generation, rewound_to, end_line, end_offset, eof_newline, bytes, stored_to, first_seen)
SELECT id, 1, 0, 0, 1, 3, true, 0, 1, 1 FROM streams WHERE session_key = decode(md5($1::text), 'hex')
ON CONFLICT (stream, epoch, generation) DO UPDATE SET end_line = 2;
INSERT INTO lines AS l (stream, epoch, generation, line, kind, raw, received)
SELECT id, 1, 0, n, 0, '\x7b7d', 5 FROM streams, generate_series(4, 5) n WHERE session_key = decode(md5($1::text), 'hex')
ON CONFLICT (stream, epoch, generation, line) DO UPDATE SET received = excluded.received;
UPDATE generations SET bytes = bytes + 3 WHERE stream IN (SELECT id FROM streams WHERE session_key = decode(md5($1::text), 'hex'));
INSERT INTO folds (stream, epoch, generation, line, format, state)
SELECT id, 1, 0, 2, 1, '' FROM streams WHERE session_key = decode(md5($1::text), 'hex')
ON CONFLICT (stream) DO UPDATE SET line = excluded.line`

// TestOwnersAreFilledIn: a database of the version before gets the owner in every row, beside servers of that version
// that store lines all the while, new sessions among them. Its keys change once they have stopped.
func TestOwnersAreFilledIn(t *testing.T) {
	at := pgtest.Shared(t).Database(t)
	m, db := migrationIn(t, at, sqlstore.Opening{})
	if err := m.UpTo(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	exec(t, db, fillBefore)
	stop, stored := olderServer(t, at)
	if err := m.Run(t.Context()); !errors.Is(err, sqlstore.ErrOlderServes) {
		t.Fatalf("beside a server that knows other keys: %v", err)
	}
	if have, _, err := m.versions(t.Context()); err != nil || have != withOwners {
		t.Fatalf("schema %d, %v", have, err)
	}
	stop()
	if n := <-stored; n < 2 {
		t.Errorf("%d rounds of the older server", n)
	}
	patient, _ := migrationIn(t, at, sqlstore.Opening{Wait: true}) // PostgreSQL may still be ending its connection
	if err := patient.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if wrong := withoutOwner(t, db); len(wrong) != 0 {
		t.Error(wrong)
	}
	for _, x := range ownedTables() {
		wrong := list(t, db, `SELECT count(*) || ' of ' || (SELECT count(*) FROM `+x.name+`) FROM `+x.name+` t LEFT JOIN `+x.of+`
WHERE t.owner IS DISTINCT FROM s.owner HAVING count(*) > 0 OR (SELECT count(*) FROM `+x.name+`) < 3`)
		if len(wrong) != 0 {
			t.Errorf("%s: rows with another owner: %v", x.name, wrong)
		}
	}
}

// olderServer stores lines as a server of the version before does, until it is stopped. It then tells how often.
func olderServer(t *testing.T, at string) (stop func(), stored <-chan int) {
	t.Helper()
	config, err := pgx.ParseConfig(at)
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["application_name"] = nameServing + "15"
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	go func() {
		defer func() { _ = conn.Close(context.Background()) }()
		n := 0
		for ; ctx.Err() == nil; n++ {
			tx, err := conn.Begin(context.Background())
			if err != nil {
				t.Error(err)
				break
			}
			for _, session := range []int{n%600 + 1, 1000 + n} { // one that is there, and a new one
				for statement := range strings.SplitSeq(storeBefore, ";\n") {
					if _, err := tx.Exec(context.Background(), statement, strconv.Itoa(session)); err != nil {
						t.Errorf("%v in %s", err, statement)
						cancel()
						break
					}
				}
			}
			if err := tx.Commit(context.Background()); err != nil {
				t.Error(err)
				break
			}
		}
		done <- n
	}()
	t.Cleanup(cancel)
	return cancel, done
}
