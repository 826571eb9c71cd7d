//go:build unix

package store_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/server/store/pgtest"
	"github.com/ccship/ccship/server/store/postgres"
)

// TestPostgresAtOnce is several servers that start together on an empty database.
func TestPostgresAtOnce(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			s, err := store.Open(t.Context(), url)
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
	kit.Err(t, "made by another build", store.ErrOtherBuild)(store.OpenWith(t.Context(), url, store.Opening{Say: func(string) { made() }}))
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
	} {
		t.Run(what, func(t *testing.T) {
			_, err := store.Open(t.Context(), test.url)
			var open *postgres.OpenError
			kit.Require(t, errors.As(err, &open), "no OpenError: %v", err)
			text := open.Error() + "\n" + open.Hint
			kit.Check(t, strings.Contains(text, test.says) && strings.Count(text, "\n") == 1 && open.Hint != "", "says %q", text)
			kit.Check(t, !strings.Contains(text, "sesame"), "tells the password: %q", text)
		})
	}
	kit.Err(t, "from the future", store.ErrNewer)(store.Open(t.Context(), newer))
	for _, earlier := range []string{"ALTER TABLE store_identity DROP COLUMN schema; UPDATE goose_db_version SET version_id = 25 WHERE version_id = 1",
		"UPDATE store_identity SET schema = 'another'", "DROP TABLE store_identity"} {
		url := c.Database(t)
		kit.Must(t, openPostgres(t, url).Close())
		c.Exec(t, name(url), earlier)
		_, err := store.Open(t.Context(), url)
		kit.Check(t, errors.Is(err, store.ErrOtherBuild) && !strings.Contains(err.Error(), "\n"), "%s: %v", earlier, err)
	}
	for _, url := range []string{"postgres://u:sesame@:x/", "postgres://h/db?target_session_attrs=sesame", "postgres://h/db?pool_max_conns=sesame"} {
		_, err := store.Open(t.Context(), url)
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
