//go:build unix

package store_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/server/store/pgtest"
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
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// TestPostgresRefusals: each says what is wrong in one line, without the password, and what to do.
func TestPostgresRefusals(t *testing.T) {
	c := pgtest.Shared(t)
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	go answerAll(web)
	newer := c.Database(t)
	s := openPostgres(t, newer)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
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
			var open *store.OpenError
			if !errors.As(err, &open) {
				t.Fatalf("no OpenError: %v", err)
			}
			text := open.Error() + "\n" + open.Hint
			if !strings.Contains(text, test.says) || strings.Count(text, "\n") != 1 || open.Hint == "" {
				t.Errorf("says %q", text)
			}
			if strings.Contains(text, "sesame") {
				t.Errorf("tells the password: %q", text)
			}
		})
	}
	if _, err := store.Open(t.Context(), newer); !errors.Is(err, store.ErrNewer) {
		t.Errorf("from the future: %v", err)
	}
	for _, url := range []string{"postgres://u:sesame@:x/", "postgres://h/db?target_session_attrs=sesame", "postgres://h/db?pool_max_conns=sesame"} {
		_, err := store.Open(t.Context(), url)
		if !errors.Is(err, store.ErrBadURL) || strings.Contains(err.Error(), "u:sesame") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", url, err)
		}
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

// TestPostgresWithoutTrigrams: where the extension may not be made, words are found from their beginning, and it says
// so; once it is there, every part of a word is found.
func TestPostgresWithoutTrigrams(t *testing.T) {
	c := pgtest.Shared(t)
	url := c.Lodger(t, "lodger")
	s := openPostgres(t, url)
	if notes := strings.Join(s.Notes(), "\n"); !strings.Contains(notes, "pg_trgm") {
		t.Errorf("no word about pg_trgm: %q", notes)
	}
	put(t, s, batch("s", object(0, "x")))
	saveTexts(t, s, "It's the Frobnicator: path\\to 'x' 가나다")
	finds := func(s *store.Postgres, text string) bool {
		t.Helper()
		hits, err := s.Search(t.Context(), server.Scope{All: true}, server.SearchQuery{Text: text, Limit: 5})
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		return len(hits.List) == 1
	}
	for text, want := range map[string]bool{
		"frob": true, "the frob": true, `"the frobnicator"`: true, "nicator": false, "It's": true, `path\to`: true,
		"나": true, "나다": true, "& | ! :*": false, `'x'`: true, "the other": false,
	} {
		if got := finds(s, text); got != want {
			t.Errorf("without trigrams %q is found: %v", text, got)
		}
	}
	c.Exec(t, name(url), "CREATE EXTENSION pg_trgm")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openPostgres(t, url)
	for text, want := range map[string]bool{"nicator": true, "나다": true, "t'": true, "the other": false} {
		if got := finds(s, text); got != want {
			t.Errorf("with trigrams %q is found: %v", text, got)
		}
	}
}

// saveTexts stores texts as derived of the only stream that lags.
func saveTexts(t *testing.T, s full, texts ...string) {
	t.Helper()
	tasks, err := s.Lagging(t.Context(), 1)
	if err != nil || len(tasks) != 1 {
		t.Fatalf("lagging: %v, %v", tasks, err)
	}
	d := &server.Derivation{Task: tasks[0], Position: server.Position{Epoch: 1, Line: int64(len(texts))}, Done: true}
	for i, text := range texts {
		d.Texts = append(d.Texts, server.Text{Line: int64(i), Time: start, Kind: "prompt", Text: text})
	}
	if err := s.SaveDerived(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}
