//go:build linux

package server_test

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/gauge"
	"github.com/ccship/ccship/server/store/pgtest"
)

// database is where a server stores, seen from outside.
type database interface {
	store() string      // as --store takes it
	use() gauge.Use     // of its own processes
	tables() []relation // with their indexes
	size() int64        // of everything, WAL left out
	wal() int64         // written since it began; -1: not known
	worn(raw int64)     // makes it as one that has run for a while, before that much is imported
	flush()             // brings what is in memory or in the WAL to its place
	vacuum(full bool)   // while no server runs
	backup(to string)   // to a file or folder
	restore(at string)  // into a database of its own
}

// relation is what one table and its indexes take.
type relation struct {
	name  string
	bytes int64
}

// searching tells tables that are only there to search.
var searching = regexp.MustCompile(`text|gram|fts|search|place`)

// share is the bytes of tables that are only there to search, and of all.
func share(all []relation) (search, total int64) {
	for _, t := range all {
		if total += t.bytes; searching.MatchString(t.name) {
			search += t.bytes
		}
	}
	return search, total
}

func largestFirst(all []relation) []relation {
	slices.SortFunc(all, func(a, b relation) int { return cmp.Or(-cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.name, b.name)) })
	return all
}

// lite is SQLite: a file, and no process.
type lite struct {
	t       *testing.T
	program string
	file    string
}

func newLite(t *testing.T, program string) *lite {
	return &lite{t, program, filepath.Join(t.TempDir(), "server.db")}
}

func (l *lite) store() string  { return "sqlite:" + l.file }
func (l *lite) use() gauge.Use { return gauge.Use{} }
func (l *lite) wal() int64     { return -1 }
func (l *lite) worn(int64)     {}

// size counts pages: what the last ones hold may still be in the WAL, whose file is never shorter than it was once.
func (l *lite) size() (n int64) {
	db := l.open()
	defer db.Close()
	kit.Must(l.t, db.QueryRowContext(context.Background(),
		"SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").Scan(&n))
	return n
}

func (l *lite) open() *sql.DB {
	l.t.Helper()
	db, err := sql.Open("sqlite", "file:"+url.PathEscape(l.file)+"?_pragma=busy_timeout(60000)")
	kit.Must(l.t, err)
	return db
}

func (l *lite) exec(statement string) {
	l.t.Helper()
	db := l.open()
	defer db.Close()
	_, err := db.ExecContext(context.Background(), statement)
	kit.Must(l.t, err)
}

func (l *lite) flush() { l.exec("PRAGMA wal_checkpoint(PASSIVE)") }

func (l *lite) tables() (all []relation) {
	l.t.Helper()
	db := l.open()
	defer db.Close()
	rows, err := db.QueryContext(context.Background(), `SELECT coalesce(m.tbl_name, s.name), sum(s.pgsize)
		FROM dbstat AS s LEFT JOIN sqlite_schema AS m ON m.name = s.name WHERE s.aggregate = 1 GROUP BY 1`)
	kit.Must(l.t, err)
	defer rows.Close()
	for rows.Next() {
		var one relation
		kit.Must(l.t, rows.Scan(&one.name, &one.bytes))
		all = append(all, one)
	}
	kit.Must(l.t, rows.Err())
	return largestFirst(all)
}

func (l *lite) vacuum(bool) { l.exec("VACUUM") }

func (l *lite) backup(to string) {
	execute(l.t, l.program, "backup", "--force", "--store", l.store(), "--to", to)
}

func (l *lite) restore(from string) {
	execute(l.t, l.program, "restore", "--store", "sqlite:"+from+".restored", "--from", from)
}

// elephant is a database of a PostgreSQL of its own.
type elephant struct {
	t       *testing.T
	cluster *pgtest.Cluster
	url     string
	name    string
	begin   int64 // of the WAL
}

func newElephant(t *testing.T) *elephant {
	t.Helper()
	e := &elephant{t: t, cluster: pgtest.New(t, pgtest.Settings{"shared_buffers = 1GB", "max_wal_size = 4GB",
		"min_wal_size = 2560MB", "effective_cache_size = 4GB", "random_page_cost = 1.1", "work_mem = 16MB"})}
	e.url = e.cluster.Database(t)
	u, err := url.Parse(e.url)
	kit.Must(t, err)
	e.name = strings.TrimPrefix(u.Path, "/")
	e.begin = e.at()
	return e
}

func (e *elephant) number(query string) int64 {
	e.t.Helper()
	n, err := strconv.ParseInt(e.cluster.Exec(e.t, e.name, query), 10, 64)
	kit.Must(e.t, err)
	return n
}

func (e *elephant) at() int64     { return e.number("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn") }
func (e *elephant) wal() int64    { return e.at() - e.begin }
func (e *elephant) store() string { return e.url }
func (e *elephant) size() int64   { return e.number("SELECT pg_database_size(current_database())") }
func (e *elephant) flush()        { e.cluster.Exec(e.t, e.name, "CHECKPOINT") }

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
	u, err := gauge.Tree(e.cluster.PID())
	kit.Must(e.t, err)
	return u
}

// tables counts partitions as one.
func (e *elephant) tables() (all []relation) {
	e.t.Helper()
	out := e.cluster.Exec(e.t, e.name, `SELECT coalesce(pg_partition_root(oid)::regclass::text, relname) || ' ' || sum(pg_total_relation_size(oid))
		FROM pg_class WHERE relkind IN ('r', 'm') AND relnamespace = 'public'::regnamespace
		GROUP BY coalesce(pg_partition_root(oid)::regclass::text, relname)`)
	for line := range strings.Lines(out) {
		var one relation
		_, err := fmt.Sscan(line, &one.name, &one.bytes)
		kit.Must(e.t, err)
		all = append(all, one)
	}
	return largestFirst(all)
}

func (e *elephant) vacuum(full bool) {
	if full {
		e.cluster.Exec(e.t, e.name, "VACUUM FULL")
		return
	}
	e.cluster.Exec(e.t, e.name, "VACUUM")
}

func (e *elephant) client(program string, args ...string) {
	e.t.Helper()
	if out, err := e.cluster.Command(program, args...).CombinedOutput(); err != nil {
		e.t.Fatalf("%s: %v\n%s", program, err, kit.Tail(string(out), 1000))
	}
}

// The dump lies next to the cluster, in a folder that its user may write to.
func (e *elephant) dump() string { return filepath.Join(filepath.Dir(e.cluster.Log()), "dump") }

func (e *elephant) backup(string) {
	kit.Must(e.t, os.RemoveAll(e.dump()))
	e.client("pg_dump", "--format=custom", "--compress=1", "--file", e.dump(), "--dbname", e.url)
}

func (e *elephant) restore(string) {
	e.client("pg_restore", "--exit-on-error", "--jobs=2", "--no-owner", "--dbname", e.cluster.Database(e.t), e.dump())
}
