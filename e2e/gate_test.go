//go:build unix

package e2e

import (
	"bytes"
	"github.com/ccship/ccship/e2e/kit"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// gate stands in front of a server and can make it fail. Without a fault it passes everything on unchanged.
type gate struct {
	srv *httptest.Server

	mu       sync.Mutex // guards what follows
	backend  http.Handler
	fault    fault
	answered func() // called when the backend's answer to a POST is on its way; for killing the daemon there
	posts    int    // POSTs that came in
	passed   int    // of them, those the backend answered
	bytes    int64  // of their bodies, as they came
}

// fault decides about a request; nil lets it pass. It may be called by several goroutines at once.
type fault func(r *http.Request) *verdict

// verdict is what happens to a request instead of, or after, its being passed on.
type verdict struct {
	status int
	header map[string]string
	body   string
	lose   bool // pass it on, then cut the connection instead of answering
	cut    bool // cut the connection at once
	hang   bool // do not answer until the client gives up
}

func newGate(t testing.TB, backend http.Handler) *gate {
	t.Helper()
	g := &gate{backend: backend}
	g.srv = httptest.NewServer(g)
	t.Cleanup(func() { g.srv.CloseClientConnections(); g.srv.Close() })
	return g
}

// set changes the fault; nil removes it.
func (g *gate) set(f fault) { kit.Locked(&g.mu, func() { g.fault = f }) }

// counts returns the POSTs that came in, those that were passed on, and the bytes of their bodies.
func (g *gate) counts() (posts, passed int, bytes int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.posts, g.passed, g.bytes
}

// onAnswer sets what is called after each answer of the backend to a POST.
func (g *gate) onAnswer(f func()) { kit.Locked(&g.mu, func() { g.answered = f }) }

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone, killed most likely
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	g.mu.Lock()
	backend, fault, answered := g.backend, g.fault, g.answered
	if r.Method == http.MethodPost {
		g.posts++
		g.bytes += int64(len(body))
	}
	g.mu.Unlock()
	var v *verdict
	if fault != nil {
		v = fault(r)
		r.Body = io.NopCloser(bytes.NewReader(body)) // the fault may have read it
	}
	if v == nil || v.lose {
		recorder := httptest.NewRecorder()
		backend.ServeHTTP(recorder, r)
		if r.Method == http.MethodPost {
			kit.Locked(&g.mu, func() { g.passed++ })
		}
		if v == nil {
			answer(w, recorder.Code, recorder.Header(), recorder.Body.Bytes())
		}
	}
	if v != nil {
		v.apply(w, r)
	}
	if answered != nil && v == nil && r.Method == http.MethodPost {
		answered()
	}
}

func answer(w http.ResponseWriter, code int, header http.Header, body []byte) {
	for name, values := range header {
		w.Header()[name] = values
	}
	w.WriteHeader(code)
	_, _ = w.Write(body) // a client that is gone asks again
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

func (v *verdict) apply(w http.ResponseWriter, r *http.Request) {
	switch {
	case v.lose, v.cut:
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = conn.Close()
		}
	case v.hang:
		select {
		case <-r.Context().Done():
		case <-time.After(5 * time.Minute):
		}
	default:
		header := http.Header{}
		for name, value := range v.header {
			header.Set(name, value)
		}
		answer(w, v.status, header, []byte(v.body))
	}
}

// refuse answers every POST with a status.
func refuse(status int, header ...string) fault {
	v := &verdict{status: status, body: `{"error":{"code":"test","message":"refused by the test"}}`}
	v.header = map[string]string{"Content-Type": "application/json"}
	for i := 0; i+1 < len(header); i += 2 {
		v.header[header[i]] = header[i+1]
	}
	return onPost(func(*http.Request) *verdict { return v })
}

// unreachable cuts every connection.
func unreachable(*http.Request) *verdict { return &verdict{cut: true} }

// onPost restricts a fault to deliveries.
func onPost(f fault) fault {
	return func(r *http.Request) *verdict {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/api/conversations") {
			return nil
		}
		return f(r)
	}
}

// balancer is one address in front of several servers. Connections go to them in turn; one that does not answer is
// passed over. It is as simple as a balancer can be: a request that was begun is never repeated.
type balancer struct {
	listener net.Listener

	mu       sync.Mutex
	backends []string // guarded by mu, as next
	next     int
}

func newBalancer(t testing.TB) *balancer {
	t.Helper()
	l := kit.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	b := &balancer{listener: l}
	t.Cleanup(func() { l.Close() })
	go b.run()
	return b
}

func (b *balancer) url() string { return "http://" + b.listener.Addr().String() }

// set names the servers.
func (b *balancer) set(servers ...*shipServer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = nil
	for _, s := range servers {
		b.backends = append(b.backends, s.url.Host)
	}
}

func (b *balancer) run() {
	for {
		front, err := b.listener.Accept()
		if err != nil {
			return
		}
		go b.serve(front)
	}
}

// serve passes bytes on in both directions until one side ends.
func (b *balancer) serve(front net.Conn) {
	defer front.Close()
	back := b.dial()
	if back == nil {
		return
	}
	defer back.Close()
	done := make(chan struct{}, 2)
	pipe := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		done <- struct{}{}
	}
	go pipe(front, back)
	go pipe(back, front)
	<-done
}

// dial connects to the next server that is there; nil: none is.
func (b *balancer) dial() net.Conn {
	b.mu.Lock()
	hosts := append(append([]string{}, b.backends[b.next:]...), b.backends[:b.next]...)
	b.next = (b.next + 1) % len(b.backends)
	b.mu.Unlock()
	for _, host := range hosts {
		if c, err := net.Dial("tcp", host); err == nil {
			return c
		}
	}
	return nil
}
