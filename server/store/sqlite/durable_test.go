package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/lines"
)

// TestDurability pins what COMMIT promises; no test can pull the plug.
func TestDurability(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "server.db"))
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
	s := kit.Try(Open(t.Context(), filepath.Join(t.TempDir(), "server.db"))).Must(t)
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
