//go:build unix

package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/server/store/pgtest"
	"github.com/ccship/ccship/server/store/postgres"
)

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
	_, err = store.Open(t.Context(), asClerk)
	var open *postgres.OpenError
	kit.Check(t, errors.As(err, &open) && strings.Contains(open.Hint, "ccship-server user list"),
		"an older schema: %v", err)
}
