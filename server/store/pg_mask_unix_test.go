//go:build unix

package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/pgtest"
)

// dumped are the tables of a database whose rows hold a text, as a dump would have it.
func dumped(t *testing.T, url, text string) (found []string) {
	t.Helper()
	c := kit.Try(pgx.Connect(t.Context(), url)).Must(t)
	defer c.Close(t.Context())
	rows := kit.Try(c.Query(t.Context(), `SELECT tablename FROM pg_tables WHERE schemaname = current_schema()`)).Must(t)
	tables := kit.Try(pgx.CollectRows(rows, pgx.RowTo[string])).Must(t)
	for _, table := range tables {
		var n int
		// Text as it is, in lower case, and the bytes of a bytea in hexadecimal digits.
		kit.Must(t, c.QueryRow(t.Context(), `SELECT count(*) FROM `+pgx.Identifier{table}.Sanitize()+` AS r
WHERE position(lower($1) IN lower(r::text)) > 0 OR position($2 IN r::text) > 0`, text, fmt.Sprintf("%x", text)).Scan(&n))
		if n > 0 {
			found = append(found, table)
		}
	}
	return found
}

// TestPostgresMasked: no row of any table holds a secret that was masked, wherever it was.
func TestPostgresMasked(t *testing.T) {
	t.Parallel()
	url := pgtest.Shared(t).Database(t)
	st := openPostgres(t, url)
	put(t, st, batch("s", object(0, prompt)))
	put(t, st, batch("s", object(0, `{}`))) // the first bytes are kept aside
	put(t, st, batch("s", object(1, prompt)))
	for _, task := range lease(t, st) {
		save(t, st, task, server.Derivation{Texts: []server.Text{{Line: 1, Time: start, Kind: "prompt", Text: needle}},
			State: []byte(needle), Live: true, Moments: []server.Moment{{Line: 1, Kind: "prompt", Data: []byte(needle)}},
			Summary: server.Summary{Title: needle, FirstPrompt: needle}})
	}
	upload(t, st, 0, "s", "tool-results/t.txt", []byte(needle))
	c := mark("c", 1)
	c.Summary = needle
	putCheckpoints(t, st, 0, "s", "e", c)
	found := dumped(t, url, needle)
	kit.Require(t, len(found) >= 8, "only %q hold it", found)
	snap := openSession(t, st, "s")
	token := []server.Token{{Text: ownToken}}
	sum := uploadOf(0, "s", "", []byte(needle)).SHA256
	done := mask(t, st, &server.Masking{Stream: snap.Session().ID,
		Lines:       []server.LineMask{lineMask(t, snap, 0, prompt), lineMask(t, snap, 1, prompt)},
		Files:       []server.FileMask{{SHA256: sum, Tokens: token}},
		Checkpoints: []server.CheckpointMask{{ID: "c", SHA256: sum, Tokens: token}},
	})
	kit.Equal(t, "masked", done, server.Masked{Lines: 2, Files: 1, Checkpoints: 1})
	for _, text := range []string{needle, strings.ToLower(needle[4:20]), needle[4:20]} {
		found := dumped(t, url, text)
		kit.Check(t, found == nil, "%q is in %q", text, found)
	}
}
