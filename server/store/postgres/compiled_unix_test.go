//go:build unix

package postgres

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/store/pgtest"
)

// TestNothingIsCompiled: a table without a key is read within a transaction of writes without compiling the statement,
// which takes a thousand times as long as to run it.
func TestNothingIsCompiled(t *testing.T) {
	s := openPg(t, pgtest.Shared(t).Database(t))
	tx, err := s.pool.BeginTx(t.Context(), s.beginWrite(classBackground))
	kit.Must(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), byKey); err != nil {
		t.Fatal(err)
	}
	rows, err := tx.Query(t.Context(), `EXPLAIN ANALYZE SELECT secret FROM store_identity`)
	kit.Must(t, err)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	kit.Must(t, err)
	if text := strings.Join(plan, "\n"); strings.Contains(text, "JIT") {
		t.Error(text)
	}
}
