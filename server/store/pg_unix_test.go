//go:build unix

package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/server/store/pgtest"
	"github.com/ccship/ccship/server/store/postgres"
)

func openPostgres(t *testing.T, url string) *postgres.Store {
	t.Helper()
	return openPostgresWith(t, url, store.Opening{})
}

func openPostgresWith(t *testing.T, url string, how store.Opening) *postgres.Store {
	t.Helper()
	s := kit.Try(postgres.Open(t.Context(), url, how)).Must(t)
	t.Cleanup(func() { _ = s.Close() }) // closed before by some
	return s
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(url string) string { return url }).run(t)
}

// onPostgres is the contract on databases of the shared cluster, each reached by what through makes of its URL.
func onPostgres(t *testing.T, through func(url string) string) suite {
	t.Helper()
	var urls sync.Map // a store's URL
	template := pgtest.Shared(t).Database(t)
	kit.Must(t, openPostgres(t, template).Close())
	with := func(t *testing.T, how store.Opening) full {
		url := through(pgtest.Shared(t).Copy(t, name(template)))
		s := openPostgresWith(t, url, how)
		urls.Store(s, url)
		return s
	}
	again := func(t *testing.T, s full, how store.Opening) full {
		kit.Must(t, s.(*postgres.Store).Close())
		url, _ := urls.Load(s)
		again := openPostgresWith(t, url.(string), how)
		urls.Store(again, url)
		return again
	}
	return suite{
		with:   with,
		open:   func(t *testing.T) full { return with(t, store.Opening{}) },
		again:  again,
		reopen: func(t *testing.T, s full) full { return again(t, s, store.Opening{}) },
		query: func(t *testing.T, s full, query string) (n int64) {
			url, _ := urls.Load(s)
			config := kit.Try(pgx.ParseConfig(url.(string))).Must(t)
			config.DefaultQueryExecMode = pgx.QueryExecModeExec // also through a pooler
			for _, ours := range []string{"pool_mode", "direct_host", "direct_port"} {
				delete(config.RuntimeParams, ours) // parts of a store's URL that PostgreSQL does not know
			}
			conn := kit.Try(pgx.ConnectConfig(t.Context(), config)).Must(t)
			defer func() { _ = conn.Close(context.Background()) }()
			kit.Must(t, conn.QueryRow(t.Context(), query).Scan(&n))
			return n
		},
	}
}

// TestPostgresWithoutDDL: a role that may not change the schema does everything but migrate.
func TestPostgresWithoutDDL(t *testing.T) {
	c := pgtest.Shared(t)
	url := c.Database(t)
	kit.Must(t, openPostgres(t, url).Close())
	c.Exec(t, name(url), `CREATE ROLE clerk LOGIN;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO clerk;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO clerk;
REVOKE CREATE ON SCHEMA public FROM PUBLIC`)
	asClerk := strings.Replace(url, "user=postgres", "user=clerk", 1)
	s := openPostgres(t, asClerk)
	saveTexts(t, s, "a frobnicator")
	hits, err := s.Search(t.Context(), server.Scope{All: true}, server.SearchQuery{Text: "nicat", Limit: 5})
	kit.Check(t, err == nil && len(hits.List) == 1, "search: %+v, %v", hits, err)
	kit.Err(t, "forget", nil)(s.Forget(t.Context(), server.Scope{All: true}, "s", 0, start))
	kit.Must(t, s.Close())
	c.Exec(t, name(url), "DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)")
	_, err = store.Open(t.Context(), asClerk, store.Opening{})
	var open *postgres.OpenError
	kit.Check(t, errors.As(err, &open) && strings.Contains(open.Hint, "ccship-server user list"), "an older schema: %v", err)
}

// TestPostgresPooled is the contract through a pooler in transaction mode.
func TestPostgresPooled(t *testing.T) {
	s := onPostgres(t, pgtest.Shared(t).Pooler(t))
	s.rows = true
	s.run(t)
}

// TestPooledServers: servers behind one pooler hear of each other's lines, and many writers share few connections.
func TestPooledServers(t *testing.T) {
	c := pgtest.Shared(t)
	url := c.Pooler(t)(c.Database(t))
	one, two := openPostgres(t, url), openPostgres(t, url)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	heard := kit.Try(two.Changes(ctx)).Must(t)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() { kit.Should(t, one.Put(ctx, batch(fmt.Sprintf("s%d", i), object(0, "x"), object(1, "y")))) })
	}
	wg.Wait()
	for i := 0; ; i++ { // what was put before the other one listened is not announced again
		put(t, one, batch("again", object(int64(i), "x")))
		select {
		case <-heard:
		case <-time.After(200 * time.Millisecond):
			if ctx.Err() == nil {
				continue
			}
			t.Fatal("the other server heard nothing")
		}
		break
	}
	list, err := two.Sessions(ctx, server.Page{Limit: 100})
	kit.Check(t, err == nil && len(list.List) == 51, "%d sessions are stored, want 51 (%v)", len(list.List), err)
	kit.Has(t, "notes", strings.Join(two.Notes(), "\n"), "statement_timeout")
}

// TestPooledURLs: what is missing in a URL is said in one line, without the password.
func TestPooledURLs(t *testing.T) {
	for url, says := range map[string]string{
		"postgres://u:sesame@h/db?pool_mode=transaction": "direct_host",
		"postgres://u:sesame@h/db?pool_mode=statement":   "transaction or session",
	} {
		_, err := store.Open(t.Context(), url, store.Opening{})
		kit.Check(t, errors.Is(err, store.ErrBadURL) && strings.Contains(err.Error(), says) &&
			!strings.Contains(err.Error(), "sesame") && !strings.Contains(err.Error(), "\n"), "%s: %v", url, err)
	}
}

// TestPostgresAtOnce is several servers that start together on an empty database.
func TestPostgresAtOnce(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			s, err := store.Open(t.Context(), url, store.Opening{})
			if err != nil {
				t.Error(err)
				return
			}
			kit.Should(t, s.Close())
		})
	}
	wg.Wait()
}

// TestPostgresTurn: a server that waited while another one made the schema refuses that of another build.
func TestPostgresTurn(t *testing.T) {
	c := pgtest.Shared(t)
	url := c.Database(t)
	kit.Must(t, openPostgres(t, url).Close())
	c.Exec(t, name(url), "UPDATE store_identity SET schema = 'another'; ALTER TABLE goose_db_version RENAME TO later")
	turn := kit.Try(pgx.Connect(t.Context(), url)).Must(t)
	defer turn.Close(t.Context())
	do := func(query string) { kit.Try(turn.Exec(t.Context(), query)).Should(t) }
	do("SELECT pg_advisory_lock(x'63630000'::int, 0)")
	made := sync.OnceFunc(func() {
		do("ALTER TABLE later RENAME TO goose_db_version")
		do("SELECT pg_advisory_unlock(x'63630000'::int, 0)")
	})
	kit.Err(t, "made by another build", store.ErrOtherBuild)(store.Open(t.Context(), url, store.Opening{Say: func(string) { made() }}))
}

// TestPostgresRefusals: each says what is wrong in one line, without the password, and what to do.
func TestPostgresRefusals(t *testing.T) {
	c := pgtest.Shared(t)
	web := kit.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	defer web.Close()
	go answerAll(web)
	newer := c.Database(t)
	s := openPostgres(t, newer)
	kit.Must(t, s.Close())
	c.Exec(t, name(newer), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true)")
	c.Exec(t, "postgres", "CREATE DATABASE latin TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'")
	c.Exec(t, "postgres", "CREATE ROLE nologin")
	for what, test := range map[string]struct{ url, says string }{
		"nobody there":    {"postgres://u:sesame@127.0.0.1:1/x", "can't be reached"},
		"no such host":    {"postgres://u:sesame@no.such.host.invalid/x", "can't be reached"},
		"no PostgreSQL":   {"postgres://u:sesame@" + web.Addr().String() + "/x?sslmode=disable", "is not a PostgreSQL"},
		"no such user":    {strings.Replace(c.URL("postgres"), "user=postgres", "user=nobody_here&password=sesame", 1), `refuses user "nobody_here"`},
		"may not log in":  {strings.Replace(c.URL("postgres"), "user=postgres", "user=nologin", 1), `refuses user "nologin"`},
		"no such base":    {c.URL("nothing_here"), `has no database "nothing_here"`},
		"other encoding":  {c.URL("latin"), "UTF8"},
		"from the future": {newer, "newer ccship-server"},
		"read-only":       {c.URL("postgres") + "&options=-c%20default_transaction_read_only%3Don", "takes no writes"},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := store.Open(t.Context(), test.url, store.Opening{})
			var open *postgres.OpenError
			kit.Require(t, errors.As(err, &open), "no OpenError: %v", err)
			text := open.Error() + "\n" + open.Hint
			kit.Check(t, strings.Contains(text, test.says) && strings.Count(text, "\n") == 1 && open.Hint != "", "says %q", text)
			kit.Check(t, !strings.Contains(text, "sesame"), "tells the password: %q", text)
		})
	}
	kit.Err(t, "from the future", store.ErrNewer)(store.Open(t.Context(), newer, store.Opening{}))
	for _, earlier := range []string{"ALTER TABLE store_identity DROP COLUMN schema; UPDATE goose_db_version SET version_id = 25 WHERE version_id = 1",
		"UPDATE store_identity SET schema = 'another'", "DROP TABLE store_identity"} {
		url := c.Database(t)
		kit.Must(t, openPostgres(t, url).Close())
		c.Exec(t, name(url), earlier)
		_, err := store.Open(t.Context(), url, store.Opening{})
		kit.Check(t, errors.Is(err, store.ErrOtherBuild) && !strings.Contains(err.Error(), "\n"), "%s: %v", earlier, err)
	}
	for _, url := range []string{"postgres://u:sesame@:x/", "postgres://h/db?target_session_attrs=sesame", "postgres://h/db?pool_max_conns=sesame"} {
		_, err := store.Open(t.Context(), url, store.Opening{})
		kit.Check(t, errors.Is(err, store.ErrBadURL) && !strings.Contains(err.Error(), "u:sesame") &&
			!strings.Contains(err.Error(), "\n"), "%s: %v", url, err)
	}
}

// answerAll is a server of another protocol.
func answerAll(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
		}()
	}
}

// name is the database in a URL of the shared cluster.
func name(url string) string {
	url = strings.TrimPrefix(url, "postgres:///")
	return url[:strings.IndexByte(url, '?')]
}

// saveTexts stores texts, and what is derived of them.
func saveTexts(t *testing.T, s full, texts ...string) { library(t, s, texts...) }

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }
