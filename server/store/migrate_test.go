package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlite"
)

// filled is what databases of each version are filled with before they are brought up to date.
var filled = map[int64]string{
	1: `
INSERT INTO streams (id, session_id, machine, project_hash, host, project, cwd, path, parent, first_received, last_received)
VALUES (7, 's', 'm', 'ph', 'h', 'shop', '/w', 'p/s.jsonl', '', 1000000, 2000000),
  (8, 's', '', 'ph', '', '', '', '', '', 1000000, 1500000),
  (9, 's/agent-1', 'm', 'ph', 'h', 'shop', '/w', 'p/s/a.jsonl', 's', 1000000, 1000000);
INSERT INTO epochs (id, stream, name, rank, first_seen) VALUES (3, 7, 'e', 1, 1000000), (4, 8, '', 1, 1000000), (5, 9, 'e', 1, 1000000);
INSERT INTO generations VALUES (3, 0, 0, 2, 20, 1, 20, 1000000), (3, 1, 1, 2, 18, 1, 9, 3000000), (4, 0, 0, 1, 0, 1, 5, 1000000),
  (5, 0, 0, 1, 9, 1, 9, 1000000);
INSERT INTO lines (epoch, generation, line, kind, raw) VALUES (3, 0, 0, 0, CAST('{"type":"user","uuid":"u","message":{"content":"needle"}}' AS BLOB)),
  (3, 0, 1, 1, x'00ff'), (3, 1, 1, 0, CAST('{"a":1}' AS BLOB)), (4, 0, 0, 0, CAST('{}' AS BLOB)), (5, 0, 0, 0, CAST('{}' AS BLOB));
INSERT INTO superseded (epoch, generation, line, kind, raw, replaced) VALUES (3, 0, 1, 0, CAST('{}' AS BLOB), 1500000);
INSERT INTO keys (id, name, hash, created, used, revoked) VALUES (2, 'laptop', zeroblob(32), 900000, 0, 0), (4, 'old', x'01', 950000, 0, 960000);`,
	2: `
INSERT INTO users (id, name, role, created) VALUES (11, 'ann', 'member', 5);
INSERT INTO keys (name, hash, created, user) VALUES ('anns', x'02', 5, 11);
INSERT INTO streams (id, owner, session_id, machine, project_hash, host, project, cwd, path, parent, first_received, last_received)
VALUES (20, 11, 's', 'm', 'ph', '', '', '', '', '', 5, 6);
INSERT INTO epochs (id, stream, name, rank, first_seen) VALUES (21, 20, 'e', 1, 5);
INSERT INTO generations VALUES (21, 0, 0, 1, 3, 1, 3, 5);
INSERT INTO lines (epoch, generation, line, kind, raw, received) VALUES (21, 0, 0, 0, CAST('{}' AS BLOB), 6);
INSERT INTO shares (with_user, owner, project_hash, project, created) VALUES (11, 1, 'ph', 'shop', 5);
INSERT INTO forgotten VALUES (11, 'gone', 5, 3);`,
	4: `
INSERT INTO documents (id, stream, path_key, path, linked, added_at, added_by, unlinked_at, link_rank, link_version, link_at)
VALUES (1, 7, x'00', 'a.md', 1, 5, 'user', 0, 1, 1, 5);
INSERT INTO wishes (id, stream, path, link, wisher, asked, state, reason, answered) VALUES ('w', 7, 'b.md', 1, 1, 5, 'waiting', '', 0);`,
	5: `SELECT 1;`,
	6: `SELECT 1;`,
	7: `SELECT 1;`,
	8: `INSERT INTO moments VALUES (7, 0, 0, 'prompt', CAST('{}' AS BLOB));`,
	9: `
INSERT INTO answers (owner, key, stream, counted, sidechain, model, time, input, output, cache_read, cache_write_5m, cache_write_1h)
VALUES (1, 'k', 7, 1, 0, 'm', 5, 1, 2, 3, 4, 5), (1, 'k', 9, 0, 0, 'm', 5, 1, 2, 3, 4, 5);
INSERT INTO texts (id, stream, epoch, generation, line, kind, text) VALUES (5, 7, 3, 1, 1, 'prompt', 'old words');
INSERT INTO texts_index (rowid, text) VALUES (5, 'old words');`,
	10: `SELECT 1;`,
	11: `SELECT 1;`,
	12: `SELECT 1;`,
	13: `SELECT 1;`,
	14: `INSERT INTO marks VALUES (1, 7, 1, 'n', 'o', '', 5);`,
	15: `INSERT INTO share_links (hash, stream, maker, "key", created, until) VALUES (x'00', 7, 1, 0, 5, 6);`,
	16: `INSERT INTO cold_objects VALUES (1, 7, 0, 'o', 5, x'00', 2, 5);`,
	17: `INSERT INTO saved_views VALUES (1, 'n', 'sessions', 'view=failed', 5);`,
	19: `SELECT 1;`,
	20: `UPDATE streams SET summed = 0; INSERT INTO drops VALUES (3, 1, 1, 2, 1), (4, 0, 0, 0, 0);`,
	21: `SELECT 1;`,
	22: `SELECT 1;`,
	18: `INSERT INTO retention_holds VALUES (1, 0, 'shop', '', 'ann', 'a case', 5);`,
	3: `
INSERT INTO facts SELECT id, 'kept', '', 'kept', '', '', '', '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM streams WHERE id = 7;
UPDATE streams SET derived = version WHERE id = 7;`,
}

// TestMigrations: a database of every earlier version, with what that version could hold, is brought up to date and
// keeps it.
func TestMigrations(t *testing.T) {
	files, err := fs.Glob(os.DirFS("sqlite/migrations"), "*.sql")
	if err != nil || len(files) != len(filled) {
		t.Fatalf("%d migrations, %d ways to fill them, %v", len(files), len(filled), err)
	}
	for version := range int64(len(files)) {
		t.Run(fmt.Sprint("from ", version+1), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "server.db")
			oldDatabase(t, path, version+1)
			s := openAt(t, path)
			if v, err := s.Version(t.Context()); err != nil || v != int64(len(files)) {
				t.Fatalf("version %d, %v", v, err)
			}
			if version%2 == 0 { // the rows of before are packed later
				if seal(t, s, endOfTime) == 0 {
					t.Error("rows of before are not packed")
				}
			}
			checkOwned(t, s)
			if version >= 1 {
				checkAnn(t, s)
			}
			checkGroups(t, s, min(2+version, 3))
			if version >= 19 {
				checkRewritten(t, s)
			}
			checkDerivable(t, s, version+1)
			rows, err := s.Usage(t.Context(), all, server.UsageQuery{By: []string{"project"}})
			if want := (server.Tokens{Answers: 1, Input: 1, Output: 2, CacheRead: 3, CacheWrite5m: 4, CacheWrite1h: 5}); err != nil ||
				version >= 8 && (len(rows) != 1 || rows[0].Tokens != want || rows[0].Name != "shop") {
				t.Errorf("usage %+v, %v", rows, err)
			}
			if version >= 3 {
				waiting, err := s.PendingLinkRequests(t.Context(), 1, "m")
				if err != nil || len(waiting) != 1 || waiting[0].ID != "w" {
					t.Errorf("link requests that wait: %+v, %v", waiting, err)
				}
			}
		})
	}
}

// oldDatabase makes a database of a version, filled on the way.
func oldDatabase(t *testing.T, path string, version int64) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, os.DirFS("sqlite/migrations"), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	for v := int64(1); v <= version; v++ {
		if _, err := p.UpTo(context.Background(), v); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(filled[v]); err != nil {
			t.Fatalf("fill version %d: %v", v, err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// checkOwned: what was there before there were users belongs to the owner.
func checkOwned(t *testing.T, s full) {
	t.Helper()
	ctx := t.Context()
	owner, err := s.FindUser(ctx, "owner")
	if err != nil || owner.ID != 1 || owner.Role != server.Owner || owner.Created.UnixMicro() != 900000 {
		t.Errorf("%+v, %v", owner, err)
	}
	if has, err := s.Stored(ctx, 1); err != nil || has != (server.Stored{Bytes: 20 + 9 + 5 + 9 + 3, Sessions: 2}) {
		t.Errorf("stored of the owner: %+v, %v", has, err)
	}
	k, err := s.FindKey(ctx, [32]byte{})
	if err != nil || k.ID != 2 || k.User != owner || k.Name != "laptop" {
		t.Errorf("%+v, %v", k, err)
	}
	snap, err := s.View(ctx, server.Scope{User: 1}, server.Ref{SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	x := snap.Session()
	if x.ID != 7 || x.Owner != 1 || x.Generation != 1 || x.Bytes != 18 || x.First.UnixMicro() != 1000000 || x.Cwd != "/w" {
		t.Errorf("%+v", x)
	}
	got := strings.Join(dump(t, snap, 0), " ")
	if want := `0:object:{"type":"user","uuid":"u","message":{"content":"needle"}} 1:opaque:` + "\x00\xff"; got != want {
		t.Errorf("lines %q", got)
	}
	if at, err := s.Received(ctx, 7, 3, 1, 1); err != nil || at.UnixMicro() != 3000000 {
		t.Errorf("a line from before times were kept arrived at %v, %v", at, err)
	}
	expectNames(t, "owner", names(t, s, server.Scope{User: 1}, server.SessionQuery{Agents: true}), "s", "s", "s/agent-1")
	again := batch("s", object(2, "{}")) // goes on in the same stream
	again.Owner, again.Received = 1, time.UnixMicro(4000000)
	put(t, s, again)
	if list := names(t, s, all, server.SessionQuery{User: 1}); len(list) != 2 {
		t.Errorf("another stream was made: %q", list)
	}
}

func checkAnn(t *testing.T, s full) {
	t.Helper()
	expectNames(t, "ann, with whom the owner shares", names(t, s, server.Scope{User: 11}, server.SessionQuery{}), "s", "s", "s")
	if err := s.Put(t.Context(), func() *server.Batch {
		b := batch("gone/agent-1", object(0, "x"))
		b.Owner = 11
		return b
	}()); !errors.Is(err, server.ErrForgotten) {
		t.Errorf("what was forgotten is stored: %v", err)
	}
	if at, err := s.Received(t.Context(), 20, 21, 0, 0); err != nil || at.UnixMicro() != 6 {
		t.Errorf("received %v, %v", at, err)
	}
}

// checkGroups: projects have all sessions, whatever sums there were.
func checkGroups(t *testing.T, s full, want int64) {
	t.Helper()
	groups, err := s.Groups(t.Context(), all, server.GroupQuery{})
	sessions := int64(0)
	for _, g := range groups.List {
		sessions += g.Sessions
	}
	if err != nil || sessions != want {
		t.Errorf("projects have %d sessions, want %d: %+v, %v", sessions, want, groups.List, err)
	}
}

// checkRewritten: rewrites belong to whose sessions they are of.
func checkRewritten(t *testing.T, s full) {
	t.Helper()
	for user, want := range map[int64]int{1: 1, 12: 0} {
		scope := server.Scope{User: user}
		list, err := s.Drops(t.Context(), scope, server.DropQuery{Limit: 9})
		if err != nil || len(list) != want {
			t.Errorf("rewrites that user %d sees: %+v, %v", user, list, err)
		}
		if n, err := s.Dropped(t.Context(), scope, nil, 9); err != nil || n.Count != int64(want) {
			t.Errorf("%d rewrites that user %d sees, %v", n.Count, user, err)
		}
	}
}

// checkDerivable: everything is derived that was not.
func checkDerivable(t *testing.T, s *sqlite.Store, version int64) {
	t.Helper()
	tasks := lease(t, s)
	if len(tasks) < 2 {
		t.Errorf("%d sessions to derive", len(tasks))
	}
	for _, task := range tasks {
		save(t, s, task, server.Derivation{Texts: []server.Text{{Kind: "prompt", Text: "needle"}}})
	}
	f, err := s.SummaryOf(t.Context(), 7)
	if err != nil || version < 3 && f.Title != "" {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestFreshHasNoUser: a new database has no user.
func TestFreshHasNoUser(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "server.db"))
	if list, err := s.Users(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}
