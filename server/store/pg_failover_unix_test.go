//go:build unix

package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/store/pgtest"
	"github.com/ccship/ccship/server/store/postgres"
)

// ingest stores lines in many streams at once while trouble is made; then everything that was acknowledged must be
// there, and all must have been acknowledged, unless the trouble was longer than Put's patience.
func ingest(t *testing.T, s full, trouble func()) {
	t.Helper()
	const writers = 6
	var wg sync.WaitGroup
	var acknowledged [writers]atomic.Int64
	stop := make(chan struct{})
	for w := range writers {
		wg.Go(func() {
			for i := int64(0); ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				b := batch(fmt.Sprint("s", w), object(2*i, fmt.Sprint("line ", 2*i)), object(2*i+1, fmt.Sprint("line ", 2*i+1)))
				for began := time.Now(); ; began = time.Now() {
					err := s.Put(t.Context(), b)
					if err == nil {
						break
					}
					if time.Since(began) < 20*time.Second { // not all of Put's patience: a slow machine takes longer
						t.Errorf("stream %d, line %d: %v", w, 2*i, err)
						return
					}
				}
				acknowledged[w].Store(2*i + 2)
			}
		})
	}
	all := func() (n int64) {
		for w := range acknowledged {
			n += acknowledged[w].Load()
		}
		return n
	}
	moves := func() {
		t.Helper()
		for from, end := all(), time.Now().Add(10*time.Minute); all() < from+100; {
			if time.Now().After(end) || t.Failed() {
				t.Error("no line is stored any more")
				break
			}
			<-time.After(5 * time.Millisecond)
		}
	}
	moves()
	trouble()
	moves()
	close(stop)
	wg.Wait()
	for w := range acknowledged {
		expectLines(t, s, fmt.Sprint("s", w), acknowledged[w].Load())
	}
	t.Logf("%d lines acknowledged", all())
}

// expectLines demands that a stream has at least n lines, and each as it was sent.
func expectLines(t *testing.T, s full, session string, n int64) {
	t.Helper()
	lines := dump(t, openSession(t, s, session), 0)
	kit.Check(t, int64(len(lines)) >= n, "%s: %d lines of %d that were acknowledged", session, len(lines), n)
	for i, line := range lines {
		want := fmt.Sprintf("%d:object:line %d", i, i)
		kit.Require(t, line == want, "%s has %q, want %q", session, line, want)
	}
}

// TestPostgresRestart: the database crashes and recovers, twice, under load.
func TestPostgresRestart(t *testing.T) {
	t.Parallel()
	c := pgtest.New(t, nil)
	ingest(t, openPostgres(t, c.URL("postgres")), func() {
		for range 2 {
			kit.Should(t, c.Restart("immediate"))
		}
	})
}

// TestPostgresFailover: the primary is killed under load, the synchronous standby takes over.
func TestPostgresFailover(t *testing.T) {
	t.Parallel()
	one := pgtest.New(t, nil)
	two := one.Standby(t, "two")
	one.Confirm(t, "two")
	ingest(t, openPostgres(t, pgtest.Together("postgres", one, two)), func() {
		kit.Should(t, one.Kill())
		kit.Should(t, two.Promote())
	})
}

// TestPostgresConnectionsEnd: an administrator ends all connections, again and again.
func TestPostgresConnectionsEnd(t *testing.T) {
	c := pgtest.Shared(t)
	url := c.Database(t)
	ingest(t, openPostgres(t, url), func() {
		for range 5 {
			c.Exec(t, "postgres", `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '`+name(url)+`'`)
		}
	})
}

// TestPostgresTwoServers: two on one database write the same streams, in opposite orders, and neither loses a line or
// waits for the other for ever.
func TestPostgresTwoServers(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	servers := []*postgres.Store{openPostgres(t, url), openPostgres(t, url)}
	const streams, rounds = 8, 25
	var wg sync.WaitGroup
	for n, s := range servers {
		for k := range streams {
			wg.Go(func() {
				stream := k
				if n == 1 {
					stream = streams - 1 - k
				}
				for i := range int64(rounds) {
					b := batch(fmt.Sprint("s", stream), object(i, fmt.Sprint("line ", i)), object(rounds+int64(n), "of one server"))
					kit.Should(t, s.Put(t.Context(), b))
				}
			})
		}
	}
	wg.Wait()
	for k := range streams {
		snap := openSession(t, servers[0], fmt.Sprint("s", k))
		lines := dump(t, snap, 0)
		var bytes int64
		for i := range int64(rounds) {
			bytes += int64(len(fmt.Sprint("line ", i))) + 1
		}
		if bytes += 2 * int64(len("of one server")+1); len(lines) != rounds+2 || snap.Session().Bytes != bytes {
			t.Errorf("stream %d has %d lines and counts %d bytes, want %d and %d", k, len(lines), snap.Session().Bytes, rounds+2, bytes)
		}
	}
}

// TestPostgresNotices: what one server stores another one's listeners hear, also after their connection broke.
func TestPostgresNotices(t *testing.T) {
	c := pgtest.Shared(t)
	url := c.Database(t)
	here, there := openPostgres(t, url), openPostgres(t, url)
	heard := kit.Try(there.Changes(t.Context())).Must(t)
	next := int64(0)
	hears := func() server.Change {
		t.Helper()
		for end := time.After(10 * time.Minute); ; {
			put(t, here, batch("s", object(next, "x"))) // again and again: a notice may be missed while nobody listens
			next++
			select {
			case c := <-heard:
				return c
			case <-time.After(50 * time.Millisecond):
			case <-end:
				t.Fatal("nothing is heard")
			}
		}
	}
	if c := hears(); c.SessionID != "s" || c.Machine != "m" || c.Stream == 0 || c.To != c.From+1 || !c.At.Equal(start) {
		t.Errorf("heard %+v", c)
	}
	c.Exec(t, "postgres", `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '`+name(url)+`'`)
	for len(heard) > 0 {
		<-heard
	}
	last := next
	for hears().From < last {
	}
	long := batch("s"+string(make([]byte, 9000)), object(0, "x"))
	put(t, here, long) // too long for a notice: it is stored all the same
	hears()
}

// TestPostgresHeardOnce: a server's own changes come to its listeners at once, and not again by way of the database.
func TestPostgresHeardOnce(t *testing.T) {
	url := pgtest.Shared(t).Database(t)
	here, there := openPostgres(t, url), openPostgres(t, url)
	hereHeard := kit.Try(here.Changes(t.Context())).Must(t)
	thereHeard := kit.Try(there.Changes(t.Context())).Must(t)
	// until puts in a session until the other side has heard of it, and answers how often.
	until := func(s full, session string, heard <-chan server.Change, count map[string]int) (puts int) {
		t.Helper()
		for end := time.After(10 * time.Minute); count[session] == 0; {
			put(t, s, batch(session, object(int64(puts), "x")))
			puts++
			for more := true; more; {
				select {
				case c := <-heard:
					count[c.SessionID]++
				case <-time.After(30 * time.Millisecond):
					more = false
				case <-end:
					t.Fatal("nothing is heard")
				}
			}
		}
		return puts
	}
	hereCount, thereCount := map[string]int{}, map[string]int{}
	until(there, "both listen", hereHeard, hereCount)
	puts := until(here, "own", thereHeard, thereCount)
	until(there, "mark", hereHeard, hereCount)
	kit.Equal(t, "changes, heard times", hereCount["own"], puts)
}

// apiOn serves what a store has, with keys that another one may have, and returns an owner's key.
func apiOn(t *testing.T, st, keys full) (http.Handler, string) {
	t.Helper()
	key, hash := auth.NewKey()
	kit.Must(t, keys.AddKey(t.Context(), server.Key{User: addUser(t, keys, "ann", server.Owner), Name: "ann", Hash: hash, Created: start}))
	log := slog.New(slog.DiscardHandler)
	a := api.New(st, auth.New(keys, log), server.NewHub(st))
	a.Log = log
	return a.Handler(), key
}

// calls are all calls of the API, as its description has them, on a session that there is.
func calls(t *testing.T, h http.Handler, key string) (out [][2]string) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/openapi.yaml", http.NoBody)
	r.Header.Set("X-API-Key", key)
	h.ServeHTTP(w, r)
	path, method := regexp.MustCompile(`^  (/api/\S*):`), regexp.MustCompile(`^    (get|post|put|patch|delete):`)
	at := ""
	for line := range strings.Lines(w.Body.String()) {
		if m := path.FindStringSubmatch(line); m != nil {
			at = m[1]
		}
		if m := method.FindStringSubmatch(line); m != nil && at != "" {
			to := regexp.MustCompile(`\{sha256\}`).ReplaceAllString(at, strings.Repeat("ab", 32))
			to = regexp.MustCompile(`\{(name|user)\}`).ReplaceAllString(to, "ann")
			to = strings.ReplaceAll(to, "{id}", "s")
			out = append(out, [2]string{strings.ToUpper(m[1]), regexp.MustCompile(`\{\w+\}`).ReplaceAllString(to, "1")})
		}
	}
	kit.Require(t, len(out) >= 40, "%d calls are described", len(out))
	return out
}

const oneLine = `{"session_id":"s","project_hash":"h","entries":[{"line_index":1,"type":"user","text":"x"}]}`

// ask answers a call's status and when to come again.
func ask(ctx context.Context, h http.Handler, call [2]string, key string) (int, string) {
	w := httptest.NewRecorder()
	body := http.NoBody
	r := httptest.NewRequestWithContext(ctx, call[0], call[1], body)
	if call[0] != http.MethodGet {
		r = httptest.NewRequestWithContext(ctx, call[0], call[1], strings.NewReader(oneLine))
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("X-API-Key", key)
	h.ServeHTTP(w, r)
	return w.Code, w.Header().Get("Retry-After")
}

// TestPostgresAway: while the database can't be reached every call of the API says that it may be made later, whether
// its key can't be looked up or, with a key, what it asks for; no call says that the server is at fault.
func TestPostgresAway(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t, pgtest.Fast)
	st := openPostgres(t, cluster.Database(t))
	put(t, st, batch("s", object(0, "x")))
	lite := openAt(t, filepath.Join(t.TempDir(), "keys.db"))
	whole, key := apiOn(t, st, st)
	past, pastKey := apiOn(t, st, lite)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	all := calls(t, whole, key)
	for _, trouble := range []func() error{
		func() error { return cluster.Stop("immediate") },
		func() error {
			return errors.Join(cluster.Configure("default_transaction_read_only = on"), cluster.Restart("immediate"))
		},
	} {
		kit.Must(t, trouble())
		expectAway(ctx, t, all, served{whole, key}, served{past, pastKey})
		kit.Must(t, errors.Join(cluster.Stop("immediate"), cluster.Start(), cluster.Configure("default_transaction_read_only = off")))
	}
	for _, call := range [][2]string{{"GET", "/api/sessions"}, {"GET", "/api/sessions/s"}, {"POST", "/api/conversations"}} {
		kit.Eventually(t, call[1]+" works again", 10*time.Minute, func() bool {
			status, _ := ask(ctx, whole, call, key)
			return status == http.StatusOK
		})
	}
}

// served is an API with a key.
type served struct {
	http.Handler
	key string
}

// expectAway makes every call while the database is away, with a key that can't be looked up and with one that can.
func expectAway(ctx context.Context, t *testing.T, all [][2]string, whole, past served) {
	t.Helper()
	var later atomic.Int64
	var wg sync.WaitGroup
	for _, call := range all {
		if slices.Contains([]string{"/api/openapi.yaml", "/api/events", "/api/proof"}, call[1]) {
			continue // asks nothing of the database, listens until the client goes, needs no key
		}
		wg.Go(func() {
			status, after := ask(ctx, whole, call, whole.key)
			if status != http.StatusServiceUnavailable || after == "" {
				t.Errorf("%s %s: %d, to be made again after %q s", call[0], call[1], status, after)
			}
			status, after = ask(ctx, past, call, past.key)
			if status == http.StatusInternalServerError || status == http.StatusServiceUnavailable && after == "" {
				t.Errorf("%s %s with a key: %d, to be made again after %q s", call[0], call[1], status, after)
			}
			if status == http.StatusServiceUnavailable {
				later.Add(1)
			}
		})
	}
	wg.Wait()
	kit.Check(t, later.Load() >= 20, "%d calls with a key say that they may be made later", later.Load())
}
