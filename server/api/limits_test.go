package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api"
	"github.com/ccship/ccship/server/auth"
)

// stuckStore stores nothing until it is let go, and says when a request waits.
type stuckStore struct {
	server.Store
	waiting chan struct{}
	let     chan struct{}
}

func (s *stuckStore) Put(ctx context.Context, b *server.Batch) error {
	s.waiting <- struct{}{}
	select {
	case <-s.let:
		return s.Store.Put(ctx, b)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestGracefulStop stops a server with a request in work: that one is answered, and Run ends without error.
func TestGracefulStop(t *testing.T) {
	r := newRig(t)
	stuck := &stuckStore{r.store, make(chan struct{}), make(chan struct{})}
	s := api.New(stuck, auth.New(r.store, slog.New(slog.DiscardHandler)), server.NewHub(r.store))
	ln := kit.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { kit.Err(t, "run", nil)(s.Run(ctx, ln)) })
	wg.Go(func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+ln.Addr().String()+"/api/conversations",
			strings.NewReader(bare))
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("X-API-Key", r.key)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Errorf("request cut off: %v", err)
			return
		}
		defer res.Body.Close()
		kit.Equal(t, "status", res.StatusCode, http.StatusOK)
	})
	<-stuck.waiting
	stop()
	close(stuck.let)
	wg.Wait()
}

// fullStore has no space.
type fullStore struct{ server.Store }

func (fullStore) Put(context.Context, *server.Batch) error { return &pgconn.PgError{Code: "53100"} }

// TestDiskFull: where the database has no space clients are told so, to come back later.
func TestDiskFull(t *testing.T) {
	r := newRig(t)
	s := api.New(fullStore{r.store}, auth.New(r.store, slog.New(slog.DiscardHandler)), server.NewHub(r.store))
	r.http.Config.Handler = s.Handler()
	a := r.send("POST", "/api/conversations", bare, http.StatusServiceUnavailable)
	kit.Has(t, "the answer", string(a.body), "database is full")
	kit.Check(t, a.header.Get("Retry-After") != "", "headers %v", a.header)
}

// TestCutBody breaks off in the middle of a body: 408, which clients repeat, never 400, which they bury.
func TestCutBody(t *testing.T) {
	r := newRig(t)
	for _, call := range []string{"POST /api/conversations", "POST /api/checkpoints", "POST /api/sessions/s/copy", "POST /api/digests",
		"POST /api/why", "POST /api/keys", "PUT /api/views/x"} {
		conn := kit.Try(net.Dial("tcp", r.http.Listener.Addr().String())).Must(t)
		kit.Try(io.WriteString(conn, call+" HTTP/1.1\r\nHost: x\r\nX-API-Key: "+r.key+
			"\r\nContent-Length: 1000\r\n\r\n"+bare[:50])).Must(t)
		kit.Must(t, conn.(*net.TCPConn).CloseWrite())
		res := kit.Try(http.ReadResponse(bufio.NewReader(conn), nil)).Must(t)
		kit.Equal(t, "status of "+call, res.StatusCode, http.StatusRequestTimeout)
		res.Body.Close()
		conn.Close()
	}
}

// TestPutIsAbandoned: a client that goes while its lines wait for the disk leaves nothing half done.
func TestPutIsAbandoned(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := &server.Batch{Head: server.Head{SessionID: "gone"}, Lines: []server.Line{{Raw: []byte("{}")}}, Received: time.Now()}
	err := r.store.Put(ctx, b) // either is right; the store must say which
	a := r.get("/api/sessions/gone")
	kit.Equal(t, fmt.Sprintf("put said %v, then the session is %d", err, a.status), err == nil, a.status == 200)
}

// manyStore stores nothing until it is let go, or so many batches are in work at once, and counts them.
type manyStore struct {
	server.Store
	let          chan struct{}
	until        int64 // batches; 0: the test closes let
	puts, most   atomic.Int64
	stored, back atomic.Int64
	once         sync.Once
}

func (s *manyStore) Put(ctx context.Context, b *server.Batch) error {
	n := s.puts.Add(1)
	defer s.puts.Add(-1)
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	if n == s.until {
		s.once.Do(func() { close(s.let) })
	}
	<-s.let
	s.stored.Add(int64(len(b.Lines)))
	return s.Store.Put(ctx, b)
}

func TestMaxRequests(t *testing.T) {
	r := newRig(t)
	counting := &manyStore{Store: r.store, let: make(chan struct{}), until: 2}
	s := api.New(counting, auth.New(r.store, slog.New(slog.DiscardHandler)), server.NewHub(r.store))
	s.MaxRequests, s.Patience = 2, 10*time.Minute
	r.http.Config.Handler = s.Handler()
	var wg sync.WaitGroup
	for c := range 12 {
		wg.Go(func() {
			for i := range 10 {
				a, err := r.try(piece{first: int64(i), lines: objects("a", i, i+1)}.body(fmt.Sprint("s", c)))
				kit.Check(t, err == nil && a == 200, "status %d, %v", a, err)
			}
		})
	}
	wg.Wait()
	kit.Equal(t, "at once", counting.most.Load(), 2)
}

// TestThousandDaemons: a thousand daemons send at once to a database that hangs. Few of their requests are read into
// memory, some wait, the others get an answer that says when to come back; reading goes on. In the end every line is
// stored.
func TestThousandDaemons(t *testing.T) {
	const daemons, atOnce, queue = 1000, 16, 200
	r := newRig(t)
	slow := &manyStore{Store: r.store, let: make(chan struct{})}
	s := api.New(slow, auth.New(r.store, discard()), server.NewHub(r.store))
	s.MaxRequests, s.MaxQueue, s.MaxIntake, s.Patience = atOnce, queue, 4<<20, 10*time.Minute
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	r.http.URL = web.URL
	var wg sync.WaitGroup
	for d := range daemons {
		wg.Go(func() {
			body := piece{lines: []string{fmt.Sprintf(`{"n":%d}`, d)}}.body(fmt.Sprint("s", d))
			for {
				a := r.do("POST", "/api/conversations", nil, strings.NewReader(body))
				if a.status == http.StatusOK {
					return
				}
				if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" ||
					!strings.Contains(string(a.body), `"busy"`) {
					t.Errorf("daemon %d: %d %v %s", d, a.status, a.header, a.body)
					return
				}
				slow.back.Add(1)
				<-slow.let // a daemon comes back later
			}
		})
	}
	// Everybody was let in, waits, or was sent away: half of atOnce, for all daemons are one user's.
	for end := time.Now().Add(10 * time.Minute); slow.back.Load() < daemons-queue-atOnce/2; {
		kit.Require(t, !time.Now().After(end), "%d are being stored, %d were sent away", slow.puts.Load(), slow.back.Load())
		<-time.After(10 * time.Millisecond)
	}
	n := slow.most.Load()
	kit.Check(t, n <= atOnce/2, "%d requests of one user are in memory, %d may be", n, atOnce/2)
	r.send("GET", "/api/sessions", "", http.StatusOK)
	close(slow.let)
	wg.Wait()
	kit.Equal(t, "lines stored", slow.stored.Load(), daemons)
}

// TestSlowBodyOutlivesKey: a request whose body is still being read when its key is revoked stores nothing and makes no
// key.
func TestSlowBodyOutlivesKey(t *testing.T) {
	owner := newRig(t, func(s *api.Server) { api.SetBeat(s, time.Minute) })
	for path, body := range map[string]string{
		"/api/conversations": piece{lines: objects("a", 0, 3)}.body("late"),
		"/api/keys":          `{"name":"another"}`,
	} {
		name := "ann" + strings.ReplaceAll(path, "/", "-")
		ann := owner.person(name, server.Member)
		in, out := io.Pipe()
		req := kit.Try(http.NewRequestWithContext(t.Context(), http.MethodPost, owner.http.URL+path, in)).Must(t)
		req.Header.Set("X-API-Key", ann.key)
		req.Header.Set("Content-Type", "application/json")
		status := make(chan int, 1)
		go func() {
			res, err := owner.http.Client().Do(req)
			if err != nil {
				t.Error(err)
				status <- 0
				return
			}
			res.Body.Close()
			status <- res.StatusCode
		}()
		kit.Try(io.WriteString(out, body[:5])).Must(t) // taken by the client
		owner.check(waitBusy(owner))
		owner.send("DELETE", "/api/keys/"+name+"%27s%20key", "", 200)
		go func() {
			_, _ = io.WriteString(out, body[5:]) // the server may not read it to its end
			_ = out.Close()
		}()
		kit.Equal(t, path+" after its key was revoked", <-status, http.StatusUnauthorized)
	}
	owner.send("GET", "/api/sessions/late", "", http.StatusNotFound)
}

// waitBusy waits until the server works on a request beside the one that asks.
func waitBusy(r *rig) error {
	for {
		text := string(r.get("/metrics").body)
		if strings.Contains(text, "ccship_server_slots_busy 1\n") || strings.Contains(text, "ccship_server_ingest_requests 1\n") {
			return nil
		}
		if r.t.(*testing.T).Context().Err() != nil {
			return r.t.(*testing.T).Context().Err()
		}
	}
}

// sink counts the bytes of an answer and keeps none.
type sink struct {
	header http.Header
	code   int
	bytes  int
}

func (s *sink) Header() http.Header  { return s.header }
func (s *sink) WriteHeader(code int) { s.code = code }
func (s *sink) Write(b []byte) (int, error) {
	s.bytes += len(b)
	return len(b), nil
}

// TestHugeLineTakesFewCopies: answers with a line of 30 MB take a few copies of it at most, and those that want no more
// than its length next to none, whether it lies in a row or in a block.
func TestHugeLineTakesFewCopies(t *testing.T) {
	r := newRig(t)
	const size = 30 << 20
	huge := fmt.Sprintf(`{"type":"assistant","message":{"role":"assistant","content":[%s{"type":"text","text":"end"}]}}`,
		strings.Repeat(`{"type":"text","text":"x"},`, size/27))
	b := &server.Batch{Owner: 1, Received: time.Now(), Head: server.Head{SessionID: "s", Machine: "m", Epoch: "e", EndLine: 3, EOFNewline: true}}
	for i, l := range []string{`{"a":1}`, huge, `{"b":2}`} {
		b.Lines = append(b.Lines, server.Line{Index: int64(i), Kind: server.Object, Raw: []byte(l)})
	}
	kit.Must(t, r.store.Put(t.Context(), b))
	r.waitDerived()
	for _, when := range []string{"row", "block"} {
		for query, most := range map[string]struct{ bytes, allocated int }{
			"entries?after=0":  {len(huge), 3 * size},
			"entries?most=100": {200, 16 << 20},
			"raw":              {len(huge), 7 * size / 2},
		} {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/sessions/s/"+query, nil)
			req.Header.Set("X-API-Key", r.key)
			w := &sink{header: http.Header{}}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r.http.Config.Handler.ServeHTTP(w, req)
			runtime.ReadMemStats(&after)
			took := int(after.TotalAlloc - before.TotalAlloc)
			t.Logf("%s, %s: %d bytes, %d MiB allocated", when, query, w.bytes, took>>20)
			kit.Check(t, (took <= most.allocated || racing()) && w.bytes >= most.bytes && w.code <= http.StatusOK,
				"%s, %s: answers %d with %d bytes and allocates %d MiB", when, query, w.code, w.bytes, took>>20)
		}
		var page struct {
			Entries []struct {
				Line   int64          `json:"line_index"`
				Record map[string]any `json:"record"`
				Bytes  int            `json:"bytes"`
			} `json:"entries"`
		}
		r.getJSON("/api/sessions/s/entries?most="+strconv.Itoa(len(huge)-1), &page)
		e := page.Entries
		kit.Check(t, len(e) == 3 && e[0].Record != nil && e[1].Record == nil && e[1].Bytes == len(huge) && e[2].Record != nil,
			"%s: entries of at most one byte less than the longest: %d, %+v", when, len(e), e)
		kit.Try(r.store.Seal(context.Background(), time.Now().Add(time.Hour))).Must(t)
	}
}

// racing reports whether the race detector looks on: buffers that are put back are dropped at random then.
func racing() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" })
}

// TestReplacedIsBounded: of a line that was replaced over and over, a page has some bytes, and the lengths of the others.
func TestReplacedIsBounded(t *testing.T) {
	r := newRig(t)
	const size, times = 1 << 20, 9
	for i := range times {
		r.post(fmt.Sprintf(`{"session_id":"s","project_hash":"ph","entries":[{"line_index":0,"n":%d,"text":%q}]}`, i, strings.Repeat("x", size)))
	}
	var page struct {
		Entries []struct {
			Line   int64          `json:"line_index"`
			Record map[string]any `json:"record"`
			Bytes  int            `json:"bytes"`
		} `json:"entries"`
		Next *int64 `json:"next"`
	}
	r.getJSON("/api/sessions/s/entries?replaced=1", &page)
	whole := 0
	for _, e := range page.Entries {
		if e.Record != nil {
			whole++
		} else if e.Bytes < size {
			t.Errorf("neither a record nor its length: %+v", e)
		}
	}
	kit.Check(t, len(page.Entries) == times-1 && whole == 3 && page.Next == nil,
		"%d replaced ones, %d of them whole, next %v", len(page.Entries), whole, page.Next)
}
