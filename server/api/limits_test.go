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
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Run(ctx, ln); err != nil {
			t.Errorf("run: %v", err)
		}
	})
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
		if res.StatusCode != http.StatusOK {
			t.Errorf("status %d", res.StatusCode)
		}
	})
	<-stuck.waiting
	stop()
	close(stuck.let)
	wg.Wait()
}

// TestCutBody breaks off in the middle of a body: 408, which clients repeat, never 400, which they bury.
func TestCutBody(t *testing.T) {
	r := newRig(t)
	conn, err := net.Dial("tcp", r.http.Listener.Addr().String())
	must(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "POST /api/conversations HTTP/1.1\r\nHost: x\r\nX-API-Key: "+r.key+
		"\r\nContent-Length: 1000\r\n\r\n"+bare[:50])
	must(t, err)
	must(t, conn.(*net.TCPConn).CloseWrite())
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	defer res.Body.Close()
	if res.StatusCode != http.StatusRequestTimeout {
		t.Errorf("status %d", res.StatusCode)
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
	if (err == nil) != (a.status == 200) {
		t.Errorf("put said %v, then the session is %d", err, a.status)
	}
}

// countingStore notes how many batches are in work at once. None is stored before two are.
type countingStore struct {
	server.Store
	now, most atomic.Int64
	two       chan struct{}
	once      sync.Once
}

func (s *countingStore) Put(ctx context.Context, b *server.Batch) error {
	n := s.now.Add(1)
	defer s.now.Add(-1)
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	if n > 1 {
		s.once.Do(func() { close(s.two) })
	}
	<-s.two
	return s.Store.Put(ctx, b)
}

func TestMaxRequests(t *testing.T) {
	r := newRig(t)
	counting := &countingStore{Store: r.store, two: make(chan struct{})}
	s := api.New(counting, auth.New(r.store, slog.New(slog.DiscardHandler)), server.NewHub(r.store))
	s.MaxRequests, s.Patience = 2, 10*time.Minute
	r.http.Config.Handler = s.Handler()
	var wg sync.WaitGroup
	for c := range 12 {
		wg.Go(func() {
			for i := range 10 {
				a, err := r.try(piece{first: int64(i), lines: objects("a", i, i+1)}.body(fmt.Sprint("s", c)))
				if err != nil || a != 200 {
					t.Errorf("status %d, %v", a, err)
				}
			}
		})
	}
	wg.Wait()
	if n := counting.most.Load(); n != 2 {
		t.Errorf("%d at once, want 2", n)
	}
}

// manyStore stores nothing until it is let go, and counts what requests hold meanwhile.
type manyStore struct {
	server.Store
	let          chan struct{}
	puts, most   atomic.Int64
	stored, back atomic.Int64
}

func (s *manyStore) Put(ctx context.Context, b *server.Batch) error {
	n := s.puts.Add(1)
	defer s.puts.Add(-1)
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	<-s.let
	s.stored.Add(int64(len(b.Lines)))
	return s.Store.Put(ctx, b)
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
		if time.Now().After(end) {
			t.Fatalf("%d are being stored, %d were sent away", slow.puts.Load(), slow.back.Load())
		}
		<-time.After(10 * time.Millisecond)
	}
	if n := slow.most.Load(); n > atOnce/2 {
		t.Errorf("%d requests of one user are in memory, %d may be", n, atOnce/2)
	}
	if a := r.get("/api/sessions"); a.status != http.StatusOK {
		t.Errorf("reading meanwhile: %d %s", a.status, a.body)
	}
	close(slow.let)
	wg.Wait()
	if n := slow.stored.Load(); n != daemons {
		t.Errorf("%d lines of %d are stored", n, daemons)
	}
}
