package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// TestLogIsBounded: while lines come in, what they wrote leaves the log, which is used again.
func TestLogIsBounded(t *testing.T) {
	s := kit.Try(Open(t.Context(), filepath.Join(t.TempDir(), "server.db"), sqlstore.Opening{})).Must(t)
	defer func() { kit.Should(t, s.Close()) }()
	const pages = 50
	s.queue.Lead <- struct{}{}
	s.log.pages = pages
	<-s.queue.Lead
	text := strings.Repeat("x", 2*pageSize)
	written := 0
	for end := time.Now().Add(2 * time.Minute); ; written++ {
		raw := fmt.Appendf(nil, `{"n":%d,"text":%q}`, written, text)
		b := &server.Batch{Owner: 1, Received: time.Now(), Head: server.Head{SessionID: "s", EndLine: int64(written + 1)},
			Lines: []server.Line{{Index: int64(written), Raw: raw}}}
		kit.Must(t, s.Put(t.Context(), b))
		var busy, log, done int
		kit.Must(t, s.read.QueryRowContext(t.Context(), `PRAGMA wal_checkpoint(NOOP)`).Scan(&busy, &log, &done))
		if written > pages && log < pages {
			break // it began again
		}
		kit.Require(t, !time.Now().After(end), "after %d lines the log has %d pages, %d of them in the file", written, log, done)
	}
	info := kit.Try(os.Stat(s.path)).Must(t)
	if whole := int64(pages / 2 * pageSize); info.Size() < whole {
		t.Errorf("the file has %d bytes after %d lines of two pages", info.Size(), written)
	}
}

// logSize is how many bytes the log's file has.
func logSize(t *testing.T, s *Store) int64 {
	t.Helper()
	info := kit.Try(os.Stat(s.path + "-wal")).Must(t)
	return info.Size()
}

// putLarge stores a line of some pages.
func putLarge(t *testing.T, s *Store, line, pages int) {
	t.Helper()
	raw := fmt.Appendf(nil, `{"n":%d,"text":%q}`, line, strings.Repeat("x", pages*pageSize))
	b := &server.Batch{Owner: 1, Received: time.Now(), Head: server.Head{SessionID: "s", EndLine: int64(line + 1)},
		Lines: []server.Line{{Index: int64(line), Raw: raw}}}
	kit.Must(t, s.Put(t.Context(), b))
}

// TestLogIsBoundedBesideReaders: while there is always a snapshot open, each opened before the one before is closed,
// the log is used again. Its file keeps the size that it had at most.
func TestLogIsBoundedBesideReaders(t *testing.T) {
	s := openTexts(t)
	const pages = 50
	s.queue.Lead <- struct{}{}
	s.log.pages = pages
	<-s.queue.Lead
	putLarge(t, s, 0, 2)
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	put := make(chan struct{}, 1)
	readers.Go(func() {
		var open server.Snapshot
		for ctx.Err() == nil {
			next, err := s.Open(t.Context(), server.Ref{SessionID: "s"})
			if err != nil {
				t.Error(err)
				break
			}
			select { // something is written that the next one does not show, unless writers wait
			case <-put:
			case <-time.After(20 * time.Millisecond):
			}
			if open != nil {
				_ = open.Close()
			}
			open = next
		}
		if open != nil {
			_ = open.Close()
		}
	})
	written, size := int64(0), int64(0)
	for line := 1; line <= 10000 && (line < 1000 || size > written); line++ {
		putLarge(t, s, line, 2)
		ring(put)
		written, size = written+2*pageSize, logSize(t, s)
	}
	stop()
	readers.Wait()
	t.Logf("after %d bytes of lines the log's file has %d", written, size)
	kit.Check(t, size <= written, "it is never used again")
}

// TestLogIsCut: once nothing is written the log's file is empty, also if a reader was in the way at first.
func TestLogIsCut(t *testing.T) {
	s := openTexts(t)
	for line := range 20 {
		putLarge(t, s, line, 2)
	}
	snap := kit.Try(s.Open(t.Context(), server.Ref{SessionID: "s"})).Must(t)
	putLarge(t, s, 20, 2)
	kit.Check(t, !s.log.cut(t.Context()) && logSize(t, s) != 0, "the log is cut beside writers")
	kit.Must(t, snap.Close())
	for end := time.Now().Add(2 * time.Minute); logSize(t, s) > 0; <-time.After(10 * time.Millisecond) {
		kit.Require(t, !time.Now().After(end), "at rest the log has %d bytes", logSize(t, s))
	}
}

// TestLogGrowsWithFile: of a large file the log may be an eighth before it is brought there.
func TestLogGrowsWithFile(t *testing.T) {
	s := openTexts(t)
	s.log.stop()
	<-s.log.ended
	db := kit.Try(sql.Open("sqlite", s.path)).Must(t)
	defer db.Close()
	conn := kit.Try(db.Conn(t.Context())).Must(t)
	defer conn.Close()
	due := func(more int) bool {
		t.Helper()
		kit.Try(conn.ExecContext(t.Context(), `INSERT INTO filler VALUES (zeroblob(?))`, more*pageSize)).Must(t)
		s.log.looked = time.Time{}
		s.log.look(t.Context(), conn)
		select {
		case <-s.log.due:
			return true
		default:
			return false
		}
	}
	kit.Try(conn.ExecContext(t.Context(), `CREATE TABLE filler (x)`)).Must(t)
	s.log.pages = 1 << 20
	due(1000)
	s.log.checkpoint(t.Context())
	s.log.pages = 10
	kit.Check(t, !due(50), "a log of some 50 pages is due, of a file of 1000")
	kit.Check(t, due(150), "a log of more than 200 pages is not due, of a file of 1000")
}

// TestShortLogStays: what was due of a log that is in the file is not due of the next one, which is short.
func TestShortLogStays(t *testing.T) {
	s := openTexts(t)
	s.log.stop()
	<-s.log.ended
	putText(t, s, 1, "s", 0, "a")
	s.log.due <- struct{}{}
	s.log.checkpoint(t.Context())
	select {
	case <-s.log.due:
		t.Error("a checkpoint is due right after one")
	default:
	}
	var busy, pages, done int64
	err := s.read.QueryRowContext(t.Context(), `PRAGMA wal_checkpoint(NOOP)`).Scan(&busy, &pages, &done)
	kit.Check(t, err == nil && pages != 0 && pages == done, "%d of %d pages are in the file, %v", done, pages, err)
}

// TestDurability pins what COMMIT promises; no test can pull the plug.
func TestDurability(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "server.db"), sqlstore.Opening{})
	kit.Must(t, err)
	defer s.Close()
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "page_size": "8192"} {
		var got string
		err := s.conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got)
		kit.Check(t, err == nil && got == want, "%s is %q, want %q (%v)", pragma, got, want, err)
	}
	// What can be made again is not waited for, but what comes after it is.
	var undo string
	err = s.withLazyWriter(t.Context(), func(c *sql.Conn) error {
		err := c.QueryRowContext(t.Context(), "PRAGMA temp_store").Scan(&undo)
		kit.Check(t, err == nil && undo == "2", "temp_store is %q while something lazy is written (%v)", undo, err)
		if _, err := c.ExecContext(t.Context(), `DELETE FROM facts`); err != nil {
			return err
		}
		return errors.New("given up")
	})
	var mode string
	qerr := s.conn.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&mode)
	kit.Check(t, err != nil && qerr == nil && mode == "2", "synchronous is %q after something lazy (%v, %v)", mode, err, qerr)
	err = s.conn.QueryRowContext(t.Context(), "PRAGMA temp_store").Scan(&undo)
	kit.Check(t, err == nil && undo == "0", "temp_store is %q after something lazy (%v)", undo, err)
	_, err = s.read.ExecContext(t.Context(), `DELETE FROM keys`)
	kit.Check(t, err != nil, "a reading connection can write")
}

// TestPutGivenUp: a batch not yet taken by the writer is withdrawn; one that is being written is waited for, for its
// bytes are in use.
func TestPutGivenUp(t *testing.T) {
	s := kit.Try(Open(t.Context(), filepath.Join(t.TempDir(), "server.db"), sqlstore.Opening{})).Must(t)
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	answers := make(chan error)
	put := func(session string) {
		go func() {
			answers <- s.Put(ctx, &server.Batch{Head: server.Head{SessionID: session}, Lines: []server.Line{{Raw: []byte("x")}}})
		}()
	}
	taken := func() []*lines.Job {
		for {
			if g := s.queue.Take(); len(g) > 0 {
				return g
			}
			runtime.Gosched()
		}
	}
	s.queue.Lead <- struct{}{} // another writer is active
	put("written")
	group := taken()
	cancel()
	select {
	case err := <-answers:
		t.Fatalf("Put left a batch that is being written: %v", err)
	default:
	}
	group[0].Done <- nil
	err := <-answers
	kit.Check(t, err == nil, "written, but Put says %v", err)
	put("withdrawn") // the context is over already
	err = <-answers
	kit.Check(t, errors.Is(err, context.Canceled), "Put says %v", err)
	g := s.queue.Take()
	kit.Check(t, len(g) <= 0, "a batch that was given up is still there")
	<-s.queue.Lead
}

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
