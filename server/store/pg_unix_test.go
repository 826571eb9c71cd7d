//go:build unix

package store_test

import (
	"sync"
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
	var urls sync.Map // a store's URL
	template := pgtest.Shared(t).Database(t)
	if err := openPostgres(t, template).Close(); err != nil {
		t.Fatal(err)
	}
	suite{
		open: func(t *testing.T) full {
			url := pgtest.Shared(t).Copy(t, name(template))
			s := openPostgres(t, url)
			urls.Store(s, url)
			return s
		},
		reopen: func(t *testing.T, s full) full {
			if err := s.(*store.Postgres).Close(); err != nil {
				t.Fatal(err)
			}
			url, _ := urls.Load(s)
			return openPostgres(t, url.(string))
		},
	}.run(t)
}
