//go:build unix

package postgres

import (
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/pgtest"
)

func openPg(t *testing.T, url string) *Store {
	t.Helper()
	s := kit.Try(Open(t.Context(), url)).Must(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func pgBatch(session, raw string) *server.Batch {
	return &server.Batch{Head: server.Head{SessionID: session}, Lines: []server.Line{{Raw: []byte(raw)}}, Received: time.Now()}
}

// TestPostgresWaitsForItsDisk: a database set up to acknowledge before its log is on disk does not.
func TestPostgresWaitsForItsDisk(t *testing.T) {
	c := pgtest.New(t, pgtest.Settings{"synchronous_commit = off"})
	s := openPg(t, c.Database(t))
	kit.Check(t, len(s.Notes()) == 0, "notes about a sound database: %q", s.Notes())
	for setting, want := range map[string]string{"synchronous_commit": "on", "fsync": "on"} {
		var got string
		err := s.pool.QueryRow(t.Context(), `SELECT current_setting($1)`, setting).Scan(&got)
		kit.Check(t, err == nil && got == want, "%s is %q (%v), want %q", setting, got, err, want)
	}
	kit.Has(t, "notes", strings.Join(openPg(t, pgtest.Shared(t).Database(t)).Notes(), "\n"), "fsync")
}

// TestPostgresUnconfirmed: when the wait for the synchronous standby is cut short PostgreSQL says "committed". It is
// not where it should be, and Put must not say that it is.
func TestPostgresUnconfirmed(t *testing.T) {
	c := pgtest.New(t, nil)
	s := openPg(t, c.Database(t))
	s.patience = time.Second
	kit.Must(t, s.Put(t.Context(), pgBatch("before", "x")))
	kit.Must(t, c.Configure("synchronous_standby_names = 'nobody'"))
	waitUntil(t, "the setting is in force", func() bool { return c.Exec(t, "postgres", "SHOW synchronous_standby_names") == "nobody" })
	err := s.Put(t.Context(), pgBatch("given up", "x"))
	kit.Check(t, err != nil, "Put gave up waiting, and says that it is stored")
	s.patience = pgPatience
	answer := make(chan error, 1)
	go func() { answer <- s.Put(t.Context(), pgBatch("cancelled", "x")) }()
	for _, what := range []string{"Put waits for the standby", "Put, cancelled, waits again"} {
		waitUntil(t, what, func() bool {
			select {
			case err := <-answer:
				t.Fatalf("no standby has it, and Put answers %v", err)
			default:
			}
			return c.Exec(t, "postgres", `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`) == "t"
		})
	}
	kit.Must(t, c.Configure("synchronous_standby_names = ''"))
	kit.Should(t, <-answer)
}

// TestPostgresGone: without a database Put gives up in the end, in one line; with it again it goes on.
func TestPostgresGone(t *testing.T) {
	c := pgtest.New(t, nil)
	s := openPg(t, c.Database(t))
	s.patience = 300 * time.Millisecond
	kit.Must(t, c.Stop("immediate"))
	err := s.Put(t.Context(), pgBatch("s", "x"))
	kit.Check(t, err != nil && !strings.Contains(err.Error(), "\n"), "without a database: %v", err)
	kit.Must(t, c.Start())
	s.patience = pgPatience
	kit.Should(t, s.Put(t.Context(), pgBatch("s", "x")))
}

func waitUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !done(); {
		kit.Require(t, !time.Now().After(end), "never: %s", what)
		select {
		case <-t.Context().Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}
