//go:build unix

package postgres

import (
	"database/sql"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/store/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

func list(t *testing.T, db *sql.DB, query string, args ...any) (out []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	kit.Require(t, err == nil, "%v in %s", err, query)
	defer rows.Close()
	for rows.Next() {
		var x string
		kit.Must(t, rows.Scan(&x))
		out = append(out, x)
	}
	kit.Must(t, rows.Err())
	return out
}

// withoutOwner are the keys, and the tables, of a database that can't be spread by owner.
func withoutOwner(t *testing.T, db *sql.DB) []string {
	t.Helper()
	spare := "'" + strings.Join(reference, "', '") + "'"
	wrong := list(t, db, `
SELECT 'key ' || x.indexrelid::regclass || ' of ' || x.indrelid::regclass
FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid
LEFT JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = x.indkey[0]
WHERE x.indisunique AND c.relnamespace = 'public'::regnamespace AND c.relname NOT IN (`+spare+`)
  AND a.attname IS DISTINCT FROM 'owner' ORDER BY 1`)
	wrong = append(wrong, list(t, db, `
SELECT 'table ' || c.relname FROM pg_class c
WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace AND c.relname NOT IN (`+spare+`)
  AND NOT EXISTS (SELECT FROM pg_index x WHERE x.indrelid = c.oid
    AND (SELECT attname FROM pg_attribute WHERE attrelid = c.oid AND attnum = x.indkey[0]) = 'owner') ORDER BY 1`)...)
	return append(wrong, list(t, db, `
SELECT 'reference ' || f.conname FROM pg_constraint f JOIN pg_class c ON c.oid = f.conrelid
JOIN pg_class r ON r.oid = f.confrelid
WHERE f.contype = 'f' AND c.relnamespace = 'public'::regnamespace AND r.relname NOT IN (`+spare+`) AND (
  (SELECT attname FROM pg_attribute WHERE attrelid = f.conrelid AND attnum = f.conkey[1]) <> 'owner' OR
  (SELECT attname FROM pg_attribute WHERE attrelid = f.confrelid AND attnum = f.confkey[1]) <> 'owner') ORDER BY 1`)...)
}

// TestKeysBeginWithOwner: all that grows can be spread by owner. The test sees what can't.
func TestKeysBeginWithOwner(t *testing.T) {
	db := stdlib.OpenDBFromPool(openPg(t, pgtest.Shared(t).Database(t)).pool)
	defer db.Close()
	if wrong := withoutOwner(t, db); len(wrong) != 0 {
		t.Error(strings.Join(wrong, "\n"))
	}
	named := strings.Split(spread, "|")
	for _, name := range list(t, db, `SELECT relname FROM pg_class
WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace`) {
		kit.Check(t, slices.Contains(named, name) || slices.Contains(reference, name),
			"table %s is neither spread by owner nor a reference table", name)
	}
	for _, table := range []string{`wrong (id bigint PRIMARY KEY, owner bigint, UNIQUE (owner, id))`, `bare (id bigint)`,
		`leads (owner bigint, id bigint UNIQUE REFERENCES wrong (id))`} {
		kit.Try(db.ExecContext(t.Context(), `CREATE TABLE `+table)).Must(t)
	}
	want := "key leads_id_key of leads, key wrong_pkey of wrong, table bare, table leads, reference leads_id_fkey"
	kit.Equal(t, "the test sees", strings.Join(withoutOwner(t, db), ", "), want)
}
