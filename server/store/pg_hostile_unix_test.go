//go:build unix

package store_test

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/pgtest"
	"github.com/ccship/ccship/server/store/postgres/migrations"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// TestPostgresNames: names that a text column or an index does not take are kept apart all the same, and lines with
// any bytes come back as they were.
func TestPostgresNames(t *testing.T) {
	s := openPostgres(t, pgtest.Shared(t).Database(t))
	long := strings.Repeat("ü", 16<<10)
	for i, n := range []string{"a\x00", "a\x00\x00", "a\uFFFD", "a\xff", "a\xff\xfe", long, long + "x", "'; DROP TABLE lines; --"} {
		raw := string(rune('A'+i)) + "\x00\xff\\N\r"
		b := batch(n, object(0, raw))
		h := &b.Head
		h.Machine, h.Host, h.Epoch, h.Path, h.Cwd, h.Project, h.Parent, h.ProjectHash = n, n, n, n, n, n, n, n
		put(t, s, b)
		b.Lines = []server.Line{object(1, raw)}
		put(t, s, b)
		snap, err := s.Open(t.Context(), server.Ref{SessionID: n, Machine: &n, Epoch: n})
		if err != nil {
			t.Fatalf("%.20q: %v", n, err)
		}
		if got := dump(t, snap, 0); !slices.Equal(got, []string{"0:object:" + raw, "1:object:" + raw}) {
			t.Errorf("%.20q has %q", n, got)
		}
		if got := snap.Session(); !utf8.ValidString(got.SessionID+got.Cwd) || strings.Contains(got.SessionID+got.Cwd, "\x00") {
			t.Errorf("shown as %q", got.SessionID)
		}
		if err := snap.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPostgresLargeLine: the longest line that clients send, three times over in one group.
func TestPostgresLargeLine(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 400 MB")
	}
	s := openPostgres(t, pgtest.Shared(t).Database(t))
	raw := bytes.Repeat([]byte("0123456789abcdef"), 64<<20/16)
	put(t, s, batch("s", server.Line{Raw: raw}, object(1, "small")))
	put(t, s, batch("s", server.Line{Raw: raw[1:]}, object(1, "small"))) // replaces it
	snap := openSession(t, s, "s")
	err := snap.Lines(t.Context(), server.Span{To: 1}, func(l server.Line) error {
		if !bytes.Equal(l.Raw, raw[1:]) {
			t.Errorf("%d bytes came back, or others", len(l.Raw))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestPostgresPoison: a batch that the schema refuses does not take others of its group with it.
func TestPostgresPoison(t *testing.T) {
	c := pgtest.Shared(t)
	url := c.Database(t)
	s := openPostgres(t, url)
	c.Exec(t, name(url), `ALTER TABLE lines ADD CHECK (raw <> 'b')`)
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			session, raw := "good", "g"
			if i%3 == 0 {
				session, raw = "bad", "b"
			}
			if err := s.Put(t.Context(), batch(session, object(int64(i), raw))); (err != nil) != (raw == "b") {
				t.Errorf("batch %d (%s): %v", i, session, err)
			}
		})
	}
	wg.Wait()
	if got := dump(t, openSession(t, s, "good"), 0); len(got) != 20 {
		t.Errorf("%d lines of 20", len(got))
	}
	if _, err := s.Open(t.Context(), server.Ref{SessionID: "bad"}); !errors.Is(err, server.ErrNotFound) {
		t.Errorf("a refused batch left its session: %v", err)
	}
}

// TestPostgresMigrations: from every earlier schema, with data in it.
func TestPostgresMigrations(t *testing.T) {
	files, err := filepath.Glob("postgres/migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for version := 1; version < len(files); version++ {
		c := pgtest.Shared(t)
		url := c.Database(t)
		db, err := sql.Open("pgx", url)
		if err != nil {
			t.Fatal(err)
		}
		older := fstest.MapFS{}
		for _, path := range files[:version] {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			older[filepath.Base(path)] = &fstest.MapFile{Data: b}
		}
		m, err := migrations.Of(db, older, false, sqlstore.Opening{})
		switch {
		case err != nil:
		case version < 17:
			err = m.UpTo(t.Context(), int64(version))
		default: // what a migration alone does not make
			err = m.Run(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		owner := "" // a trigger fills it in, until servers write it themselves
		if version >= 17 {
			owner = ", 1"
		}
		c.Exec(t, name(url), strings.ReplaceAll(`
INSERT INTO users (name, role, created) VALUES ('ann', 'member', 1);
INSERT INTO keys ("user", name, hash, created) VALUES (1, 'laptop', sha256('k'), 1);
INSERT INTO streams (owner, session_key, machine_key, session_id, machine, project_hash, host, project, cwd, path, parent,
  first_received, last_received) VALUES (1, sha256('s'), sha256('m'), 's', 'm', '', '', '', '', '', '', 5, 6);
INSERT INTO epochs VALUES (1, 1, 'e', sha256('e'), 5 OWNER);
INSERT INTO generations VALUES (1, 1, 0, 0, 1, 0, true, 4, 1, 5 OWNER);
INSERT INTO lines VALUES (1, 1, 0, 0, 5, 0, 'old' OWNER);`, " OWNER", owner))
		s := openPostgres(t, url)
		if v, err := s.Version(t.Context()); err != nil || v != int64(len(files)) {
			t.Errorf("from %d to %d (%v), want %d", version, v, err, len(files))
		}
		b := batch("s", object(1, "new"))
		b.Owner = 1
		put(t, s, b)
		if got := dump(t, openSession(t, s, "s"), 0); !slices.Equal(got, []string{"0:object:old", "1:object:new"}) {
			t.Errorf("from %d: %q", version, got)
		}
		if tasks, err := s.Lagging(t.Context(), 5); err != nil || len(tasks) != 1 || tasks[0].Position != (server.Position{}) {
			t.Errorf("from %d: to derive %+v, %v", version, tasks, err)
		}
		if keys, err := s.Keys(t.Context(), 1); err != nil || len(keys) != 1 || keys[0].User.Name != "ann" {
			t.Errorf("from %d: keys %+v, %v", version, keys, err)
		}
	}
}

// TestPostgresFewConnections: however few it may use, somebody who reads a stream can ask for other things meanwhile,
// and lines come in.
func TestPostgresFewConnections(t *testing.T) {
	s := openPostgres(t, pgtest.Shared(t).Database(t)+"&pool_max_conns=1")
	put(t, s, batch("s", object(0, "x")))
	var snaps []server.Snapshot
	for range 2 {
		snap, err := s.Open(t.Context(), server.Ref{SessionID: "s"})
		if err != nil {
			t.Fatal(err)
		}
		snaps = append(snaps, snap)
	}
	if _, err := s.SummaryOf(t.Context(), snaps[0].Session().ID); err != nil {
		t.Error(err)
	}
	put(t, s, batch("s", object(1, "y")))
	for _, snap := range snaps {
		if err := snap.Close(); err != nil {
			t.Error(err)
		}
	}
}
