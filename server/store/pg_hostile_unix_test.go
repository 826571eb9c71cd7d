//go:build unix

package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/pgtest"
	"github.com/ccship/ccship/transcript/redact"
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

// TestPostgresKillUpload: the database is killed in the middle of uploads; what was acknowledged is there, and all files
// are in the end.
func TestPostgresKillUpload(t *testing.T) {
	c := pgtest.New(t, nil)
	s := openPostgres(t, c.URL("postgres"))
	const files, chunks = 4, 40
	progress := make(chan struct{}, files*chunks)
	contents := make([][]byte, files)
	var wg sync.WaitGroup
	for i := range files {
		contents[i] = bytes.Repeat(fmt.Appendf(nil, "file %d ", i), chunks*1000)
		wg.Go(func() {
			furthest := int64(0)
			u := uploadOf(1, fmt.Sprint("s", i), "tool-results/t.txt", contents[i])
			for {
				have, complete, err := s.StartBlob(t.Context(), u)
				kit.Check(t, err != nil || complete || have >= furthest, "file %d goes on at %d, and %d were acknowledged", i,
					have, furthest)
				for err == nil && have < u.Size {
					have, err = s.PutBlob(t.Context(), 1, u.SHA256, have, contents[i][have:min(have+7000, u.Size)], start)
					if err == nil {
						furthest = have
						progress <- struct{}{}
					}
				}
				if err == nil {
					err = s.EndBlob(t.Context(), u)
				}
				if err == nil {
					return
				}
				if _, moved := errors.AsType[*server.OffsetError](err); !moved && t.Context().Err() != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 2 {
		for range files * chunks / 4 {
			<-progress
		}
		kit.Should(t, errors.Join(c.Kill(), c.Start()))
	}
	wg.Wait()
	for i, content := range contents {
		sum := fmt.Sprintf("%x", uploadOf(1, "", "", content).SHA256)
		kit.Equal(t, fmt.Sprintf("file %d: bytes of %d, or others", i, len(content)), blobContent(t, s, sum), string(content))
	}
	noFindings(t, s, files)
}

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
	token := []redact.Token{{Text: ownToken}}
	sum := uploadOf(0, "s", "", []byte(needle)).SHA256
	done := mask(t, st, &server.Masking{Stream: snap.Session().ID,
		Lines:       []protocol.LineMask{lineMask(t, snap, 0, prompt), lineMask(t, snap, 1, prompt)},
		Files:       []protocol.FileMask{{SHA256: sum, Tokens: token}},
		Checkpoints: []protocol.CheckpointMask{{ID: "c", SHA256: sum, Tokens: token}},
	})
	kit.Equal(t, "masked", done, protocol.Masked{Lines: 2, Files: 1, Checkpoints: 1})
	for _, text := range []string{needle, strings.ToLower(needle[4:20]), needle[4:20]} {
		found := dumped(t, url, text)
		kit.Check(t, found == nil, "%q is in %q", text, found)
	}
}
