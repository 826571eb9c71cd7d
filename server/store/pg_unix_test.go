//go:build unix

package store_test

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/e2e/kit"
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
	s := kit.Try(postgres.OpenWith(t.Context(), url, how)).Must(t)
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
