//go:build unix

package store_test

import (
	"context"
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
)

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
	kit.Must(t, cluster.Stop("immediate"))
	var later atomic.Int64
	var wg sync.WaitGroup
	for _, call := range all {
		if slices.Contains([]string{"/api/openapi.yaml", "/api/events", "/api/proof"}, call[1]) {
			continue // asks nothing of the database, listens until the client goes, needs no key
		}
		wg.Go(func() {
			status, after := ask(ctx, whole, call, key)
			if status != http.StatusServiceUnavailable || after == "" {
				t.Errorf("%s %s: %d, to be made again after %q s", call[0], call[1], status, after)
			}
			status, after = ask(ctx, past, call, pastKey)
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
	kit.Must(t, cluster.Start())
	for _, call := range [][2]string{{"GET", "/api/sessions"}, {"GET", "/api/sessions/s"}, {"POST", "/api/conversations"}} {
		if status, _ := ask(ctx, whole, call, key); status != http.StatusOK {
			t.Errorf("%s %s: %d, and the database is back", call[0], call[1], status)
		}
	}
}
