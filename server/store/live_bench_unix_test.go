//go:build unix

package store_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/server/store/pgtest"
)

const (
	liveHistory = 200              // lines that each session has before
	liveFor     = 20 * time.Second // one line a second
)

// liveStreams is how many sessions are written at once; CCSHIP_TEST=streams=N is another number.
func liveStreams() int {
	return kit.SettingNumber("streams", 1000)
}

// liveLine is a line of a session as Claude Code writes it: a prompt, an answer in two records, a call and its result.
func liveLine(stream int, n int64) string {
	at := start.Add(time.Duration(n) * time.Second).Format(time.RFC3339Nano)
	head := fmt.Sprintf(`{"uuid":"u%d-%d","parentUuid":"u%d-%d","sessionId":"s%d","timestamp":%q,"cwd":"/home/a/p",`+
		`"version":"2.0.1","gitBranch":"main",`, stream, n, stream, n-1, stream, at)
	text := strings.Repeat("the words of a long answer about func main ", 30)
	usage := `"usage":{"input_tokens":12,"output_tokens":%d,"cache_read_input_tokens":41000,"cache_creation_input_tokens":300}`
	id := fmt.Sprintf("msg_%d_%d", stream, n/4)
	switch n % 4 {
	case 0:
		return head + fmt.Sprintf(`"type":"user","message":{"role":"user","content":%q}}`, text[:200])
	case 1:
		return head + fmt.Sprintf(`"type":"assistant","message":{"id":%q,"role":"assistant","model":"claude-opus-4-1",`+
			`"content":[{"type":"text","text":%q}],`+usage+`}}`, id, text, 5)
	case 2:
		return head + fmt.Sprintf(`"type":"assistant","message":{"id":%q,"role":"assistant","model":"claude-opus-4-1",`+
			`"content":[{"type":"tool_use","id":"t%d-%d","name":"Bash","input":{"command":"go test ./..."}}],`+usage+`}}`,
			id, stream, n, 90)
	}
	return head + fmt.Sprintf(`"type":"user","message":{"role":"user","content":[{"type":"tool_result",`+
		`"tool_use_id":"t%d-%d","content":%q}]}}`, stream, n-1, text)
}

// liveBatch is a request of one session's daemon.
func liveBatch(stream int, from, to int64) *server.Batch {
	b := batch(fmt.Sprintf("s%d", stream))
	b.Owner, b.Received = int64(stream%50+1), time.Now()
	b.Head.ProjectHash, b.Head.Project = fmt.Sprintf("ph%d", stream%7), fmt.Sprintf("p%d", stream%7)
	for n := from; n < to; n++ {
		b.Lines = append(b.Lines, object(n, liveLine(stream, n)))
	}
	b.Head.EndLine = to
	return b
}

// BenchmarkLive writes a line a second in many sessions while they are derived, and prints how long lines waited and
// what that cost.
func BenchmarkLive(b *testing.B) {
	pg := pgtest.New(b, pgtest.Settings{"shared_buffers = 512MB", "max_wal_size = 4GB"})
	for _, way := range []struct {
		name string
		pg   *pgtest.Cluster
		open func(*testing.B) store.Store
	}{
		{"sqlite", nil, sqliteStore},
		{"postgres", pg, func(b *testing.B) store.Store { return pgStore(b, pg) }},
	} {
		b.Run(way.name, func(b *testing.B) {
			for range b.N {
				st := way.open(b)
				for i := range liveStreams() {
					if err := st.Put(b.Context(), liveBatch(i, 0, liveHistory)); err != nil {
						b.Fatal(err)
					}
				}
				m := run(way.pg, func() { derivedAll(b, st) })
				fmt.Fprintf(os.Stderr, "%s: %d lines of history derived in %.1f s: CPU %.2f s, database %.2f s\n", way.name,
					liveHistory*liveStreams(), m.wall.Seconds(), m.cpu.Seconds(), m.database.Seconds())
				liveRun(b, st, way.name, way.pg)
			}
		})
	}
}

// derivedAll derives until nothing lags.
func derivedAll(b *testing.B, st store.Store) {
	b.Helper()
	stop := deriving(b, st)
	for n := int64(1); n > 0; <-time.After(5 * time.Millisecond) {
		var err error
		if n, err = st.Lag(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	stop()
}

func deriving(b *testing.B, st store.Store) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&derive.Deriver{Store: st}).Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}
}

func liveRun(b *testing.B, st store.Store, name string, pg *pgtest.Cluster) {
	b.Helper()
	var posts []time.Duration
	var mu sync.Mutex
	idle := run(pg, func() { posts = livePosts(b, st, liveHistory, &mu) })
	stop := deriving(b, st)
	var worst []int64
	quit, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-quit:
				return
			case <-time.After(time.Second):
				if n, err := st.Lag(b.Context()); err == nil {
					worst = append(worst, n)
				}
			}
		}
	}()
	m := run(pg, func() { posts = livePosts(b, st, liveHistory+int64(liveFor/time.Second), &mu) })
	close(quit)
	<-watched
	began := time.Now()
	for n := int64(1); n > 0; <-time.After(5 * time.Millisecond) {
		n, _ = st.Lag(b.Context())
	}
	drained := time.Since(began)
	stop()
	slices.Sort(posts)
	lines := float64(len(posts))
	fmt.Fprintf(os.Stderr, "%s: %d posts in %.1f s, p99 %v; CPU a line, of it deriving: server %.0f %.0f µs, database %.0f %.0f µs; "+
		"lagging each second %v; drained in %v\n", name, len(posts), m.wall.Seconds(), posts[len(posts)*99/100],
		float64(m.cpu.Microseconds())/lines, float64((m.cpu-idle.cpu).Microseconds())/lines,
		float64(m.database.Microseconds())/lines, float64((m.database-idle.database).Microseconds())/lines, worst, drained)
}

// livePosts sends a line a second of each session and returns how long each took.
func livePosts(b *testing.B, st store.Store, from int64, mu *sync.Mutex) (posts []time.Duration) {
	b.Helper()
	var wg sync.WaitGroup
	began := time.Now()
	streams := liveStreams()
	for i := range streams {
		wg.Go(func() {
			for n := range int64(liveFor / time.Second) {
				<-time.After(time.Until(began.Add(time.Duration(n)*time.Second + time.Duration(i)*time.Second/time.Duration(streams))))
				sent := time.Now()
				if err := st.Put(b.Context(), liveBatch(i, from+n, from+n+1)); err != nil {
					b.Error(err)
				}
				mu.Lock()
				posts = append(posts, time.Since(sent))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return posts
}
