package sqlite

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func open(t *testing.T, most int) *sql.DB {
	t.Helper()
	db := kit.Try(openConnection("file:"+filepath.ToSlash(filepath.Join(t.TempDir(), "a.db"))+"?_journal_mode=WAL", most)).Must(t)
	t.Cleanup(func() { kit.Should(t, db.Close()) })
	db.SetMaxOpenConns(1)
	exec(t, db, `CREATE TABLE a (n INTEGER PRIMARY KEY, s TEXT)`)
	for n := range 10 {
		exec(t, db, `INSERT INTO a VALUES (?, ?)`, n, fmt.Sprint("s", n))
	}
	return db
}

func exec(t *testing.T, db interface {
	Exec(string, ...any) (sql.Result, error)
}, query string, args ...any) {
	t.Helper()
	_, err := db.Exec(query, args...)
	kit.Require(t, err == nil, "%s: %v", query, err)
}

// look calls fn with the one connection.
func look(t *testing.T, db *sql.DB, fn func(*conn)) {
	t.Helper()
	c := kit.Try(db.Conn(t.Context())).Must(t)
	defer c.Close()
	kit.Must(t, c.Raw(func(x any) error { fn(x.(*conn)); return nil }))
}

// TestNested: a statement whose rows are being read is compiled once more, and both go on.
func TestNested(t *testing.T) {
	db := open(t, 8)
	c := kit.Try(db.Conn(t.Context())).Must(t)
	defer c.Close()
	const query = `SELECT n FROM a WHERE n >= ? ORDER BY n`
	outer := kit.Try(c.QueryContext(t.Context(), query, 3)).Must(t)
	defer outer.Close()
	for want := 3; want < 10; want++ {
		var first, second int
		if !outer.Next() {
			t.Fatalf("ended before %d: %v", want, outer.Err())
		}
		kit.Must(t, outer.Scan(&first))
		kit.Must(t, c.QueryRowContext(t.Context(), query, 1).Scan(&second))
		kit.Check(t, first == want && second == 1, "%d and %d, want %d and 1", first, second, want)
	}
}

// TestBounded: no more statements than asked for stay, and those let go of work again.
func TestBounded(t *testing.T) {
	for _, most := range []int{0, 1, 4} {
		bounded(t, most)
	}
}

func bounded(t *testing.T, most int) {
	t.Helper()
	db := open(t, most)
	for range 2 {
		for n := range 3*most + 1 {
			var got int
			err := db.QueryRow(fmt.Sprintf(`SELECT n + %d FROM a WHERE n = ?`, n), 2).Scan(&got)
			kit.Require(t, err == nil && got == 2+n, "%d, %v, want %d", got, err, 2+n)
		}
	}
	look(t, db, func(c *conn) {
		kit.Check(t, c.order.Len() == most && len(c.kept) == most,
			"%d and %d statements are kept, want %d", c.order.Len(), len(c.kept), most)
	})
}

// TestSchemaChanges: a statement that was compiled for an older schema gives what the newer one has.
func TestSchemaChanges(t *testing.T) {
	db := open(t, 8)
	columns := func() int {
		rows := kit.Try(db.Query(`SELECT * FROM a WHERE n = ?`, 1)).Must(t)
		defer rows.Close()
		names := kit.Try(rows.Columns()).Must(t)
		for rows.Next() {
		}
		kit.Must(t, rows.Err())
		return len(names)
	}
	n := columns()
	kit.Require(t, n == 2, "%d columns", n)
	exec(t, db, `ALTER TABLE a ADD COLUMN b INTEGER NOT NULL DEFAULT 7`)
	kit.Equal(t, "columns after one was added", columns(), 3)
	exec(t, db, `DROP TABLE a`)
	err := db.QueryRow(`SELECT * FROM a WHERE n = ?`, 1).Scan(new(int))
	kit.Check(t, err != nil, "a table that is gone was read")
	exec(t, db, `VACUUM`)
}

// TestFails: a statement that failed works the next time, and its transaction is as it was.
func TestFails(t *testing.T) {
	db := open(t, 8)
	const insert = `INSERT INTO a (n, s) VALUES (?, ?) RETURNING n`
	for n := range 3 {
		var got int
		err := db.QueryRow(insert, 5, "again").Scan(&got)
		kit.Require(t, err != nil, "two rows have one key")
		err = db.QueryRow(insert, 20+n, "new").Scan(&got)
		kit.Require(t, err == nil && got == 20+n, "%d, %v", got, err)
	}
	var n int
	err := db.QueryRow(`SELECT count(*) FROM a`).Scan(&n)
	kit.Check(t, err == nil && n == 13, "%d rows, %v, want 13", n, err)
}
