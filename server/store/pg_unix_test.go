//go:build unix

package store_test

import (
	"testing"

	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/server/store/pgtest"
)

func openPostgres(t *testing.T, url string) *store.Postgres {
	t.Helper()
	s, err := store.OpenPostgres(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // closed before by some
	return s
}

func TestPostgres(t *testing.T) {
	urls := map[full]string{}
	suite{
		open: func(t *testing.T) full {
			url := pgtest.Shared(t).Database(t)
			s := openPostgres(t, url)
			urls[s] = url
			return s
		},
		reopen: func(t *testing.T, s full) full {
			if err := s.(*store.Postgres).Close(); err != nil {
				t.Fatal(err)
			}
			return openPostgres(t, urls[s])
		},
	}.run(t)
}
