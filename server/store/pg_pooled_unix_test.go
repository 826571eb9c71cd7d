//go:build unix

package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/server/store/pgtest"
)

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
		_, err := store.Open(t.Context(), url)
		kit.Check(t, errors.Is(err, store.ErrBadURL) && strings.Contains(err.Error(), says) &&
			!strings.Contains(err.Error(), "sesame") && !strings.Contains(err.Error(), "\n"), "%s: %v", url, err)
	}
}
