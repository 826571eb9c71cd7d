package store_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/server/store/search"
	"github.com/ccship/ccship/server/store/sqlite"
)

func openAt(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	return openWith(t, path, store.Opening{})
}

func openWith(t *testing.T, path string, how store.Opening) *sqlite.Store {
	t.Helper()
	opened := kit.Try(store.Open(t.Context(), "sqlite:"+path, how)).Must(t)
	s := opened.(*sqlite.Store)
	t.Cleanup(func() { _ = s.Close() }) // closed before by some
	return s
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	var paths sync.Map // a store's file
	with := func(t *testing.T, how store.Opening) full {
		path := filepath.Join(t.TempDir(), "odd ?name#%41", "server.db")
		s := openWith(t, path, how)
		paths.Store(s, path)
		kit.Err(t, "the database is", nil)(os.Stat(path))
		return s
	}
	again := func(t *testing.T, s full, how store.Opening) full {
		kit.Must(t, s.(*sqlite.Store).Close())
		path, _ := paths.Load(s)
		again := openWith(t, path.(string), how)
		paths.Store(again, path)
		return again
	}
	suite{
		with:   with,
		open:   func(t *testing.T) full { return with(t, store.Opening{}) },
		again:  again,
		reopen: func(t *testing.T, s full) full { return again(t, s, store.Opening{}) },
		query: func(t *testing.T, s full, query string) (n int64) {
			db := kit.Try(sql.Open("sqlite", "file:"+(&url.URL{Path: s.(*sqlite.Store).Path()}).EscapedPath())).Must(t)
			defer db.Close()
			kit.Must(t, db.QueryRow(query).Scan(&n))
			return n
		},
	}.run(t)
}

func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes there")
	}
	path := filepath.Join(t.TempDir(), "new", "server.db")
	s := openAt(t, path)
	put(t, s, batch("s", object(0, "x")))
	for p, want := range map[string]os.FileMode{filepath.Dir(path): 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600} {
		info := kit.Try(os.Stat(p)).Must(t)
		kit.Equal(t, p+" has mode", info.Mode().Perm(), want)
	}
}

func TestBadURLs(t *testing.T) {
	for _, url := range []string{"", "sqlite", "sqlite:", "sqlite://", "mysql://x", "/var/lib/x.db"} {
		kit.Err(t, url, store.ErrBadURL)(store.Open(t.Context(), url, store.Opening{}))
	}
	dir := t.TempDir()
	_, err := store.Open(t.Context(), "sqlite:"+dir, store.Opening{})
	kit.Check(t, err != nil, "a directory was opened")
	junk := filepath.Join(dir, "junk")
	kit.Must(t, os.WriteFile(junk, []byte("this is no database, but it is long enough to look at"), 0o600))
	_, err = store.Open(t.Context(), "sqlite:"+junk, store.Opening{})
	kit.Check(t, err != nil, "a text file was opened")
}

// TestOtherSchema: a database from the future is left alone, and so is one of an earlier build. What is said is one line.
func TestOtherSchema(t *testing.T) {
	for alter, want := range map[string]error{
		`INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)`: store.ErrNewer,
		`UPDATE store_identity SET schema = 'another'`:                          store.ErrOtherBuild,
		`UPDATE goose_db_version SET version_id = 22 WHERE version_id = 1;
ALTER TABLE store_identity DROP COLUMN schema`: store.ErrOtherBuild,
		`DROP TABLE store_identity`: store.ErrOtherBuild,
	} {
		path := filepath.Join(t.TempDir(), "server.db")
		kit.Must(t, openAt(t, path).Close())
		alterAt(t, path, alter)
		before, err := os.ReadFile(path)
		kit.Must(t, err)
		for _, how := range []store.Opening{{}, {AsIs: true}} {
			_, err = store.Open(t.Context(), "sqlite:"+path, how)
			kit.Check(t, errors.Is(err, want) && !strings.Contains(err.Error(), "\n"), "%s: opened %+v: %v", alter, how, err)
		}
		after, err := os.ReadFile(path)
		kit.Check(t, err == nil && bytes.Equal(before, after), "%s: it was written to, %v", alter, err)
	}
}

// alterAt changes a database that nobody has open.
func alterAt(t *testing.T, path, statement string) {
	t.Helper()
	db := kit.Try(sql.Open("sqlite", path)).Must(t)
	_, err := db.Exec(statement)
	kit.Must(t, errors.Join(err, db.Close()))
}

// TestFreshHasNoUser: a new database has no user.
func TestFreshHasNoUser(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "server.db"))
	kit.Equal(t, "users of a new store", kit.Try(s.Users(t.Context())).Must(t), nil)
}

// TestOpenAtOnce is serve and key create on a fresh path.
func TestOpenAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.db")
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			s, err := store.Open(t.Context(), "sqlite:"+path, store.Opening{})
			if err != nil {
				t.Error(err)
				return
			}
			kit.Should(t, s.Close())
		})
	}
	wg.Wait()
}

// TestPoisonBatch: one that the schema refuses does not take others of its group with it.
func TestPoisonBatch(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "server.db"))
	db := kit.Try(sql.Open("sqlite", s.Path())).Must(t)
	defer db.Close()
	kit.Try(db.Exec(`CREATE TRIGGER poison BEFORE INSERT ON lines WHEN NEW.raw = x'62' BEGIN SELECT RAISE(FAIL, 'poison'); END`)).Must(t)
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			session, raw := "good", "g"
			if i%3 == 0 {
				session, raw = "bad", "b"
			}
			err := s.Put(t.Context(), batch(session, object(int64(i), raw)))
			kit.Equal(t, fmt.Sprintf("batch %d (%s): %v", i, session, err), err != nil, raw == "b")
		})
	}
	wg.Wait()
	kit.Equal(t, "lines of 20", len(dump(t, openSession(t, s, "good"), 0)), 20)
	kit.Err(t, "a refused batch left its session", server.ErrNotFound)(s.Open(t.Context(), server.Ref{SessionID: "bad"}))
}

// TestForgetOverwrites: what was forgotten is nowhere in the files.
func TestForgetOverwrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.db")
	s := openAt(t, path)
	const secret = "SecretThatMustGo"
	holds := func() (files []string) {
		for _, p := range []string{path, path + "-wal"} {
			b := kit.Try(os.ReadFile(p)).Must(t)
			if bytes.Contains(bytes.ToLower(b), bytes.ToLower([]byte(secret))) {
				files = append(files, p)
			}
		}
		return files
	}
	put(t, s, batch("kept", object(0, "x")))
	put(t, s, batch("s", object(0, secret), object(1, secret+strings.Repeat("x", 100_000)), object(2, secret)))
	put(t, s, batch("s", object(2, "replaced")))
	for _, task := range lease(t, s) {
		if task.SessionID == "s" {
			save(t, s, task, server.Derivation{
				State: []byte(secret), Summary: server.Summary{Title: secret, Models: []string{secret}},
				Texts:   []server.Text{{Kind: "prompt", Text: secret + strings.Repeat(" long", 10_000)}},
				Answers: []server.Answer{{Key: secret, Model: secret}},
			})
		}
	}
	kit.Require(t, len(holds()) != 0, "the secret was not even there")
	kit.Try(s.Forget(t.Context(), all, "s", 0, start)).Must(t)
	kit.Equal(t, "the secret is still in", len(holds()), 0)
	put(t, s, batch("kept", object(1, "y")))
	got := dump(t, openSession(t, s, "kept"), 0)
	kit.Check(t, len(got) == 2, "%q", got)
}

// TestOpenAsIs: who only looks at a store does not update its schema.
func TestOpenAsIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.db")
	kit.Must(t, openAt(t, path).Close())
	same := kit.Try(store.Open(t.Context(), "sqlite:"+path, store.Opening{AsIs: true})).Must(t)
	kit.Must(t, same.Close())
	db := kit.Try(sql.Open("sqlite", "file:"+path)).Must(t)
	defer db.Close()
	kit.Try(db.Exec(`DELETE FROM goose_db_version WHERE version_id = 1`)).Must(t)
	kit.Err(t, "a store of the version before", store.ErrOutdated)(store.Open(t.Context(), "sqlite:"+path, store.Opening{AsIs: true}))
	var now int64
	err := db.QueryRow(`SELECT max(version_id) FROM goose_db_version`).Scan(&now)
	kit.Check(t, err == nil && now == 0, "its schema is of version %d, was 0 (%v)", now, err)
}

// onDisk reports in which files of a database a text is.
func onDisk(t *testing.T, path, text string) (found []string) {
	t.Helper()
	for _, name := range []string{path, path + "-wal"} {
		b, err := os.ReadFile(name)
		kit.Require(t, err == nil || os.IsNotExist(err), "%v", err)
		if bytes.Contains(b, []byte(text)) {
			found = append(found, filepath.Base(name))
		}
	}
	return found
}

// indexed reports whether the index of a database holds a run of three characters.
func indexed(t *testing.T, path, run string) bool {
	t.Helper()
	db := kit.Try(sql.Open("sqlite", "file:"+path)).Must(t)
	defer db.Close()
	rows := kit.Try(db.Query(`SELECT data FROM gram_segments`)).Must(t)
	defer rows.Close()
	for rows.Next() {
		var data []byte
		kit.Must(t, rows.Scan(&data))
		if has, err := search.Holds(data, run); err != nil {
			t.Fatal(err)
		} else if has {
			return true
		}
	}
	kit.Must(t, rows.Err())
	return false
}

// TestScrub: once a secret is masked and what it was in is derived again, nothing of it is in the files: not in pages
// that were freed long before, not in the log, and no three characters of it in the index.
func TestScrub(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.db")
	st := openAt(t, path)
	long := `{"text":"` + strings.Repeat("words ", 9000) + needle + `"}`
	for i := range 3 { // the pages of a long line become free when a short one replaces it
		put(t, st, batch("s", object(int64(i), long)))
		put(t, st, batch("s", object(int64(i), `{}`)))
	}
	put(t, st, batch("clean", object(0, prompt)))
	kit.Try(st.Forget(t.Context(), all, "clean", 0, start)).Must(t) // no page of it is left
	put(t, st, batch("s", object(3, prompt)))
	for _, task := range lease(t, st) {
		save(t, st, task, server.Derivation{Texts: said(object(3, prompt), start),
			State: []byte(needle), Live: true, Moments: []server.Moment{{Line: 1, Kind: "prompt", Data: []byte(needle)}},
			Summary: server.Summary{Title: needle}})
	}
	kit.Require(t, len(onDisk(t, path, needle)) != 0 && indexed(t, path, "fgh"), "there is nothing to scrub")
	snap := kit.Try(st.Open(t.Context(), server.Ref{SessionID: "s"})).Must(t)
	m := &server.Masking{Stream: snap.Session().ID, Lines: []protocol.LineMask{lineMask(t, snap, 3, prompt)}}
	for i := range int64(3) {
		m.Lines = append(m.Lines, lineMask(t, snap, i, long))
	}
	kit.Must(t, snap.Close())
	kit.Equal(t, "masked", mask(t, st, m), protocol.Masked{Lines: 4})
	var last int64
	kit.Must(t, st.Scrub(t.Context(), func(done, total int64) {
		kit.Check(t, done > last && done <= total, "%d of %d after %d", done, total, last)
		last = done
	}))
	clean(t, st, path)
	for _, task := range lease(t, st) {
		save(t, st, task, server.Derivation{Texts: said(object(3, says("prompt", "other words")), start)})
	}
	kit.Check(t, indexed(t, path, "wor"), "the index is not used")
	clean(t, st, path)
}

func clean(t *testing.T, st *sqlite.Store, path string) {
	t.Helper()
	for _, piece := range []string{needle, needle[4:20], strings.ToLower(needle)} {
		found := onDisk(t, path, piece)
		kit.Check(t, found == nil, "%q is in %q", piece, found)
	}
	kit.Check(t, !indexed(t, path, "fgh"), "the index knows pieces of it")
	var problems int
	db := kit.Try(sql.Open("sqlite", "file:"+path)).Must(t)
	defer db.Close()
	var answer string
	if err := db.QueryRow(`PRAGMA integrity_check`).Scan(&answer); err != nil || answer != "ok" {
		problems++
		t.Errorf("integrity check: %s, %v", answer, err)
	}
	if err := st.Scrub(t.Context(), func(int64, int64) { t.Error("it is scrubbed again") }); err != nil || problems > 0 {
		t.Error(fmt.Errorf("scrub: %w", err))
	}
}
