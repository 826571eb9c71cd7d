//go:build unix

package store_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/pgtest"
)

// TestPostgresNames: names that a text column or an index does not take are kept apart all the same, and lines with
// any bytes come back as they were.
func TestPostgresNames(t *testing.T) {
	s := openPostgres(t, pgtest.Shared(t).Database(t))
	long := strings.Repeat("ü", 16<<10)
	for i, n := range []string{"a\x00", "a\x00\x00", "a\uFFFD", "a\xff", "a\xff\xfe", long, long + "x", "'; DROP TABLE lines; --"} {
		raw := string(rune('A'+i)) + "\x00\xff\\N\r"
		b := batch(n, object(0, raw))
		h := &b.Head
		h.Machine, h.Host, h.Epoch, h.Path, h.Cwd, h.Project, h.Parent, h.ProjectHash = n, n, n, n, n, n, n, n
		put(t, s, b)
		b.Lines = []server.Line{object(1, raw)}
		put(t, s, b)
		snap, err := s.Open(t.Context(), server.Ref{SessionID: n, Machine: &n, Epoch: n})
		kit.Require(t, err == nil, "%.20q: %v", n, err)
		kit.Equal(t, fmt.Sprintf("%.20q has", n), dump(t, snap, 0), []string{"0:object:" + raw, "1:object:" + raw})
		got := snap.Session()
		kit.Check(t, utf8.ValidString(got.SessionID+got.Cwd) && !strings.Contains(got.SessionID+got.Cwd, "\x00"),
			"shown as %q", got.SessionID)
		kit.Should(t, snap.Close())
	}
}

// TestPostgresLargeLine: the longest line that clients send, three times over in one group.
func TestPostgresLargeLine(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 400 MB")
	}
	s := openPostgres(t, pgtest.Shared(t).Database(t))
	raw := bytes.Repeat([]byte("0123456789abcdef"), 64<<20/16)
	put(t, s, batch("s", server.Line{Raw: raw}, object(1, "small")))
	put(t, s, batch("s", server.Line{Raw: raw[1:]}, object(1, "small"))) // replaces it
	snap := openSession(t, s, "s")
	kit.Should(t, snap.Lines(t.Context(), server.Span{To: 1}, func(l server.Line) error {
		kit.Equal(t, "bytes came back, or others", l.Raw, raw[1:])
		return nil
	}))
}

// TestPostgresPoison: a batch that the schema refuses does not take others of its group with it.
func TestPostgresPoison(t *testing.T) {
	c := pgtest.Shared(t)
	url := c.Database(t)
	s := openPostgres(t, url)
	c.Exec(t, name(url), `ALTER TABLE lines ADD CHECK (raw <> 'b')`)
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			session, raw := "good", "g"
			if i%3 == 0 {
				session, raw = "bad", "b"
			}
			kit.Equal(t, fmt.Sprintf("batch %d (%s)", i, session),
				(s.Put(t.Context(), batch(session, object(int64(i), raw))) != nil), (raw == "b"))
		})
	}
	wg.Wait()
	kit.Equal(t, "lines of 20", len(dump(t, openSession(t, s, "good"), 0)), 20)
	kit.Err(t, "a refused batch left its session", server.ErrNotFound)(s.Open(t.Context(), server.Ref{SessionID: "bad"}))
}

// TestPostgresFewConnections: however few it may use, a reader of a stream can ask for other things meanwhile,
// and lines come in.
func TestPostgresFewConnections(t *testing.T) {
	s := openPostgres(t, pgtest.Shared(t).Database(t)+"&pool_max_conns=1")
	put(t, s, batch("s", object(0, "x")))
	var snaps []server.Snapshot
	for range 2 {
		snap := kit.Try(s.Open(t.Context(), server.Ref{SessionID: "s"})).Must(t)
		snaps = append(snaps, snap)
	}
	kit.Try(s.SummaryOf(t.Context(), snaps[0].Session().ID)).Should(t)
	put(t, s, batch("s", object(1, "y")))
	for _, snap := range snaps {
		kit.Should(t, snap.Close())
	}
}
