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
	tx := kit.Try(s.pool.BeginTx(t.Context(), s.beginWrite(classBackground))).Must(t)
	defer func() { _ = tx.Rollback(t.Context()) }()
	kit.Try(tx.Exec(t.Context(), byKey)).Must(t)
	rows := kit.Try(tx.Query(t.Context(), `EXPLAIN ANALYZE SELECT secret FROM store_identity`)).Must(t)
	plan := kit.Try(pgx.CollectRows(rows, pgx.RowTo[string])).Must(t)
	text := strings.Join(plan, "\n")
	kit.Check(t, !strings.Contains(text, "JIT"), "%v", text)
}
