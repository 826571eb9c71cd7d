//go:build unix

package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api"
	"github.com/ccship/ccship/server/auth"

	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/server/store/pgtest"
)

const (
	benchWriters  = 4 // transcripts that one daemon sends at once
	benchSessions = 5 // of each writer, one after the other
	benchRequests = 15
	benchLines    = 100 // of a request
	benchRounds   = 3
)

// load is what is stored: the requests of each writer, in order.
type load struct {
	batches [benchWriters][]*server.Batch
	bodies  [benchWriters][][]byte // the same over HTTP
	lines   int
	bytes   int64
}

// newLoad invents conversations: lines of 2 KB on average, few long ones, words and numbers.
func newLoad() *load {
	l, rng := &load{}, rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the quick brown fox jumps over a lazy dog func return error nil package import context stream line result message content text")
	for w := range benchWriters {
		for s := range benchSessions {
			for r := range benchRequests {
				b := batch(fmt.Sprintf("session-%d-%d", w, s))
				var body bytes.Buffer
				fmt.Fprintf(&body, `{"project_hash":"p","session_id":%q,"entries":[`, b.Head.SessionID)
				for i := range benchLines {
					raw := benchLine(rng, words)
					index := int64(r*benchLines + i)
					b.Lines = append(b.Lines, object(index, raw))
					if i > 0 {
						body.WriteByte(',')
					}
					fmt.Fprintf(&body, `{"line_index":%d,%s`, index, raw[1:])
					l.lines, l.bytes = l.lines+1, l.bytes+int64(len(raw))+1
				}
				b.Head.EndLine = int64((r + 1) * benchLines)
				body.WriteString("]}")
				l.batches[w], l.bodies[w] = append(l.batches[w], b), append(l.bodies[w], body.Bytes())
			}
		}
	}
	return l
}

func benchLine(rng *rand.Rand, words []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"uuid":"%016x","type":"assistant","message":{"content":"`, rng.Uint64())
	for size := 300 + int(rng.ExpFloat64()*1700); b.Len() < size; {
		b.WriteString(words[rng.IntN(len(words))])
		b.WriteByte(' ')
		if rng.IntN(5) == 0 {
			fmt.Fprintf(&b, "%x ", rng.Uint32())
		}
	}
	b.WriteString(`"}}`)
	return b.String()
}

// each runs all writers at once.
func (l *load) each(b *testing.B, write func(w int) error) {
	b.Helper()
	var wg sync.WaitGroup
	for w := range benchWriters {
		wg.Go(func() {
			if err := write(w); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
}

// measured is one run.
type measured struct{ wall, cpu, database time.Duration }

// run measures what fn takes.
func run(pg *pgtest.Cluster, fn func()) measured {
	cpu := func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // can't fail for oneself
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	var m measured
	if pg != nil {
		m.database = -pg.CPU()
	}
	m.cpu = -cpu()
	began := time.Now()
	fn()
	m.wall = time.Since(began)
	m.cpu += cpu()
	if pg != nil {
		m.database += pg.CPU()
	}
	return m
}

// BenchmarkIngest stores the same lines in both stores, through the store alone and through the server's HTTP handler,
// next to a floor that does nothing but write these rows durably. It prints one table, of medians.
func BenchmarkIngest(b *testing.B) {
	l := newLoad()
	pg := pgtest.New(b, pgtest.Settings{"shared_buffers = 256MB", "max_wal_size = 4GB"})
	ways := []struct {
		name string
		pg   *pgtest.Cluster
		run  func(b *testing.B, l *load) func()
	}{
		{"SQLite: prepared inserts (floor)", nil, sqliteFloor},
		{"SQLite: store", nil, func(b *testing.B, l *load) func() { return l.store(b, sqliteStore(b)) }},
		{"SQLite: server", nil, func(b *testing.B, l *load) func() { return l.server(b, sqliteStore(b)) }},
		{"PostgreSQL: one COPY of all", pg, func(b *testing.B, l *load) func() { return copyAll(b, l, pg) }},
		{"PostgreSQL: COPY per request (floor)", pg, func(b *testing.B, l *load) func() { return copyEach(b, l, pg) }},
		{"PostgreSQL: store", pg, func(b *testing.B, l *load) func() { return l.store(b, pgStore(b, pg)) }},
		{"PostgreSQL: server", pg, func(b *testing.B, l *load) func() { return l.server(b, pgStore(b, pg)) }},
	}
	for range b.N {
		results := make([][]measured, len(ways))
		for range benchRounds { // in turns, so that a machine's moods meet all
			for i, way := range ways {
				fn := way.run(b, l)
				results[i] = append(results[i], run(way.pg, fn))
			}
		}
		out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(out, "\n%d entries, %d MB, %d writers\tentries/s\tMB/s\tCPU s/GB\tof the database\t\n", l.lines, l.bytes>>20, benchWriters)
		for i, way := range ways {
			m := results[i]
			slices.SortFunc(m, func(a, b measured) int { return int(a.wall - b.wall) })
			x, gb := m[len(m)/2], float64(l.bytes)/1e9
			fmt.Fprintf(out, "%s\t%.0f\t%.0f\t%.1f\t%.1f\t\n", way.name, float64(l.lines)/x.wall.Seconds(),
				float64(l.bytes)/1e6/x.wall.Seconds(), x.cpu.Seconds()/gb, x.database.Seconds()/gb)
			b.ReportMetric(float64(l.bytes)/1e6/x.wall.Seconds(), strings.ReplaceAll(way.name, " ", "-")+"-MB/s")
		}
		_ = out.Flush()
	}
}

func sqliteStore(b *testing.B) store.Store {
	s, err := store.Open(b.Context(), "sqlite:"+filepath.Join(b.TempDir(), "server.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

func pgStore(b *testing.B, pg *pgtest.Cluster) store.Store {
	s, err := store.Open(b.Context(), pg.Database(b))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

func (l *load) store(b *testing.B, s store.Store) func() {
	return func() {
		l.each(b, func(w int) error {
			for _, batch := range l.batches[w] {
				if err := s.Put(b.Context(), batch); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// server posts over loopback; what the client takes is in the server's figure.
func (l *load) server(b *testing.B, s store.Store) func() {
	key, hash := auth.NewKey()
	u, err := s.AddUser(b.Context(), "owner", server.Owner, server.By{At: time.Now()})
	if err == nil {
		err = s.AddKey(b.Context(), server.Key{User: u, Name: "bench", Hash: hash, Created: time.Now()})
	}
	if err != nil {
		b.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	srv := httptest.NewServer(api.New(s, auth.New(s, log), server.NewHub(s)).Handler())
	b.Cleanup(srv.Close)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: benchWriters}}
	return func() {
		l.each(b, func(w int) error {
			for _, body := range l.bodies[w] {
				if err := post(b.Context(), client, srv.URL, key, body); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func post(ctx context.Context, client *http.Client, url, key string, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/api/conversations", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("X-API-Key", key)
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return err
}

func sqliteFloor(b *testing.B, l *load) func() {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "floor.db")+
		"?_pragma=page_size(8192)&_pragma=wal_autocheckpoint(2000)&_journal_mode=WAL&_synchronous=FULL")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	_, err = db.Exec(`CREATE TABLE lines (epoch INTEGER, generation INTEGER, line INTEGER, kind INTEGER, received INTEGER, raw BLOB,
PRIMARY KEY (epoch, generation, line)) WITHOUT ROWID`)
	if err != nil {
		b.Fatal(err)
	}
	return func() {
		l.each(b, func(w int) error {
			for i, batch := range l.batches[w] {
				tx, err := db.Begin()
				if err != nil {
					return err
				}
				insert, err := tx.Prepare(`INSERT INTO lines VALUES (?, 0, ?, 0, 1, ?)`) //nolint:sqlclosecheck // tx closes it
				if err != nil {
					return err
				}
				for _, line := range batch.Lines {
					if _, err := insert.Exec(w*benchSessions+i/benchRequests, line.Index, line.Raw); err != nil {
						return err
					}
				}
				if err := tx.Commit(); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// rows are lines as the table has them.
func rows(stream int, batches ...*server.Batch) pgx.CopyFromSource {
	var out [][]any
	for i, b := range batches {
		for _, line := range b.Lines {
			out = append(out, []any{int64(stream + i/benchRequests), int64(1), int64(0), line.Index, int64(1), int16(0), line.Raw})
		}
	}
	return pgx.CopyFromRows(out)
}

var benchColumns = []string{"stream", "epoch", "generation", "line", "received", "kind", "raw"}

// floorConns connect to a database that has the store's tables.
func floorConns(b *testing.B, pg *pgtest.Cluster) (conns [benchWriters]*pgx.Conn) {
	url := pg.Database(b)
	s, err := store.Open(b.Context(), url)
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
	for w := range conns {
		if conns[w], err = pgx.Connect(b.Context(), url); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { conns[w].Close(context.Background()) })
	}
	return conns
}

func copyAll(b *testing.B, l *load, pg *pgtest.Cluster) func() {
	conns := floorConns(b, pg)
	return func() {
		l.each(b, func(w int) error {
			_, err := conns[w].CopyFrom(b.Context(), pgx.Identifier{"lines"}, benchColumns, rows(w*benchSessions, l.batches[w]...))
			return err
		})
	}
}

func copyEach(b *testing.B, l *load, pg *pgtest.Cluster) func() {
	conns := floorConns(b, pg)
	return func() {
		l.each(b, func(w int) error {
			for i, batch := range l.batches[w] {
				_, err := conns[w].CopyFrom(b.Context(), pgx.Identifier{"lines"}, benchColumns, rows(w*benchSessions+i/benchRequests, batch))
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
}
