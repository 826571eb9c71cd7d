//go:build linux

package server_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/gauge"
	"github.com/ccship/ccship/server/store/pgtest"
)

// database is where a server stores, seen from outside.
type database interface {
	store() string                // as --store takes it
	use() gauge.Use               // of its own processes
	size() int64                  // of everything, the WAL of SQLite included
	share() (search, total int64) // of tables that are only there to search, and of all
	worn(raw int64)               // makes it as one that has run for a while, before that much is imported
	flush()                       // brings what is in memory or in the WAL to its place
	compact()                     // gives back what is free
}

// searching tells tables that are only there to search.
var searching = regexp.MustCompile(`text|gram|fts|search|place`)

// lite is SQLite: a file, and no process.
type lite struct {
	t    *testing.T
	file string
}

func (l *lite) store() string  { return "sqlite:" + l.file }
func (l *lite) use() gauge.Use { return gauge.Use{} }
func (l *lite) worn(int64)     {}

func (l *lite) size() (n int64) {
	for _, end := range []string{"", "-wal"} {
		if info, err := os.Stat(l.file + end); err == nil {
			n += info.Size()
		}
	}
	return n
}

func (l *lite) open() *sql.DB {
	l.t.Helper()
	return kit.Try(sql.Open("sqlite", "file:"+url.PathEscape(l.file)+"?_pragma=busy_timeout(60000)")).Must(l.t)
}

func (l *lite) exec(statement string) {
	l.t.Helper()
	db := l.open()
	defer db.Close()
	kit.Try(db.ExecContext(context.Background(), statement)).Must(l.t)
}

func (l *lite) flush() { l.exec("PRAGMA wal_checkpoint(PASSIVE)") }

func (l *lite) share() (search, total int64) {
	l.t.Helper()
	db := l.open()
	defer db.Close()
	rows := kit.Try(db.QueryContext(context.Background(), `SELECT coalesce(m.tbl_name, s.name), sum(s.pgsize)
		FROM dbstat AS s LEFT JOIN sqlite_schema AS m ON m.name = s.name WHERE s.aggregate = 1 GROUP BY 1`)).Must(l.t)
	defer rows.Close()
	for rows.Next() {
		var name string
		var bytes int64
		kit.Must(l.t, rows.Scan(&name, &bytes))
		if total += bytes; searching.MatchString(name) {
			search += bytes
		}
	}
	kit.Must(l.t, rows.Err())
	return search, total
}

func (l *lite) compact() { l.exec("VACUUM") }

// elephant is a database of a PostgreSQL of its own.
type elephant struct {
	t       *testing.T
	cluster *pgtest.Cluster
	url     string
	name    string
}

func newElephant(t *testing.T) *elephant {
	t.Helper()
	e := &elephant{t: t, cluster: pgtest.New(t, pgtest.Settings{"shared_buffers = 1GB", "max_wal_size = 4GB",
		"min_wal_size = 2560MB", "effective_cache_size = 4GB", "random_page_cost = 1.1", "work_mem = 16MB"})}
	e.url = e.cluster.Database(t)
	u := kit.Try(url.Parse(e.url)).Must(t)
	e.name = strings.TrimPrefix(u.Path, "/")
	return e
}

func (e *elephant) store() string { return e.url }
func (e *elephant) size() (n int64) {
	e.t.Helper()
	kit.Try(fmt.Sscan(e.cluster.Exec(e.t, e.name, "SELECT pg_database_size(current_database())"), &n)).Must(e.t)
	return n
}

func (e *elephant) flush() { e.cluster.Exec(e.t, e.name, "CHECKPOINT") }

// worn fills files of the log, which the next checkpoint keeps to be used again. A new database fills each with zeroes
// first, so that its log is written twice until there are as many as it keeps.
func (e *elephant) worn(raw int64) {
	e.t.Helper()
	const file, most = 16 << 20, 2400 << 20 // below min_wal_size
	for range min(raw, most)/file + 1 {
		e.cluster.Exec(e.t, e.name, "SELECT pg_logical_emit_message(false, 'worn', '')")
		e.cluster.Exec(e.t, e.name, "SELECT pg_switch_wal()")
	}
	e.flush()
}

func (e *elephant) use() gauge.Use {
	e.t.Helper()
	return kit.Try(gauge.Tree(e.cluster.PID())).Must(e.t)
}

// share counts what has the name of a partition's table as that.
func (e *elephant) share() (search, total int64) {
	e.t.Helper()
	out := e.cluster.Exec(e.t, e.name, `SELECT coalesce(pg_partition_root(oid)::regclass::text, relname) || ' ' || pg_total_relation_size(oid)
		FROM pg_class WHERE relkind IN ('r', 'm') AND relnamespace = 'public'::regnamespace`)
	for line := range strings.Lines(out) {
		var name string
		var bytes int64
		kit.Try(fmt.Sscan(line, &name, &bytes)).Must(e.t)
		if total += bytes; searching.MatchString(name) {
			search += bytes
		}
	}
	return search, total
}

func (e *elephant) compact() { e.cluster.Exec(e.t, e.name, "VACUUM FULL") }
