package outbox

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

var origin = Origin{Machine: "m-1", Host: "desk", Epoch: "e-1", UserAgent: "ccship/test"}

// rig is a drainer between a queue and a server.
type rig struct {
	*server
	queue   *memQueue
	drainer *Drainer
	owner   *testOwner
	key     func() (string, error)
	stop    func()
}

// testOwner calls what a test sets.
type testOwner struct {
	noOwner
	announced    func()
	forgotten    func(stream uint64)
	accepts      func(kinds Kinds, again bool) error
	linkRequests func()
	outOfStep    func(why protocol.Refusal)
	openBlob     func(root, path string) (Content, error)
}

func (o *testOwner) Announced(dest string) {
	if o.announced != nil {
		o.announced()
	}
}

func (o *testOwner) Forgotten(stream uint64) {
	if o.forgotten != nil {
		o.forgotten(stream)
	}
}

func (o *testOwner) Accepts(dest string, kinds Kinds, again bool) error {
	if o.accepts == nil {
		return nil
	}
	return o.accepts(kinds, again)
}

func (o *testOwner) LinkRequests(dest string) {
	if o.linkRequests != nil {
		o.linkRequests()
	}
}

func (o *testOwner) OutOfStep(dest string, why protocol.Refusal) {
	if o.outOfStep != nil {
		o.outOfStep(why)
	}
}

func (o *testOwner) OpenBlob(dest, cwd string, ref *BlobRef) (Content, error) {
	if o.openBlob == nil {
		return o.noOwner.OpenBlob(dest, cwd, ref)
	}
	return o.openBlob(ref.Root, ref.Path)
}

// newRig makes a rig over real HTTP on loopback. Nothing runs before start.
func newRig(t testing.TB) *rig {
	s := newServer(t)
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	r := rigOf(t, s, web.URL, web.Client())
	return r
}

func rigOf(t testing.TB, s *server, base string, client *http.Client) *rig {
	u, _, err := NormalizeURL(base + "/base")
	kit.Must(t, err)
	r := &rig{server: s, queue: newMemQueue(t), owner: &testOwner{}, key: func() (string, error) { return s.key, nil }, stop: func() {}}
	r.drainer = NewDrainer(Destination{Key: "dest", URL: u, APIKey: func() (string, error) { return r.key() }}, origin, r.queue, r.queue, r.owner)
	r.drainer.Client = client
	return r
}

// start runs the drainer until stop, which comes with the end of the test at the latest.
func (r *rig) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.drainer.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		err := <-done
		kit.Check(r.t, err == nil, "Run: %v", err)
	})
	r.t.Cleanup(func() { r.stop() })
}

// add queues rows and rings.
func (r *rig) add(s Stream, rows ...Batch) {
	r.queue.add(s, rows...)
	r.drainer.Wake()
}

// hung is set once a test has waited in vain. Others do not wait as long then, so that all end before go test's limit.
var hung atomic.Bool

// until waits for a condition.
func (r *rig) until(what string, cond func() bool) {
	r.t.Helper()
	late := time.After(kit.If(hung.Load(), 30*time.Second, 2*time.Minute))
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-late:
			hung.Store(true)
			r.t.Fatalf("never: %s; health %+v, %d rows wait", what, r.drainer.Health(), r.queue.waiting())
		case <-tick.C:
		}
	}
}

// backlog queues rows of streams from 1 on.
func (r *rig) backlog(streams uint64, from, to, each int) {
	for id := range streams {
		r.queue.add(conversation(id+1), rowsOf(from, to, each)...)
	}
}

// drain starts and waits until nothing waits.
func (r *rig) drain() {
	r.t.Helper()
	r.start()
	r.drained()
}

// retried has what is due later tried now, and waits until nothing waits.
func (r *rig) retried() {
	r.t.Helper()
	r.drainer.Retry(false)
	r.drained()
}

// retriedOften is retried, again and again.
func (r *rig) retriedOften() {
	r.t.Helper()
	r.until("the queue is empty, with everything tried at once", func() bool {
		r.drainer.Retry(false)
		return r.queue.waiting() == 0
	})
}

func (r *rig) drained() {
	r.t.Helper()
	r.until("the queue is empty", func() bool { return r.queue.waiting() == 0 })
}

// troubled waits for a state and kind.
func (r *rig) troubled(state, kind string) {
	r.t.Helper()
	r.until(state+" "+kind, func() bool {
		h := r.drainer.Health()
		return h.State == state && h.Kind == kind
	})
}

// pipes is a network of net.Pipe, for tests in fake time.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	mu    sync.Mutex
	down  bool
	dials int
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

func (p *pipes) setDown(down bool) { kit.Locked(&p.mu, func() { p.down = down }) }

// dialled is how often a client dialled.
func (p *pipes) dialled() int { return kit.Under(&p.mu, func() int { return p.dials }) }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dials++
	if p.down {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pipeRig makes a rig inside a synctest bubble. Its end must be called there.
func pipeRig(t testing.TB) (r *rig, p *pipes, end func()) {
	s := newServer(t)
	p = &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	web := &http.Server{Handler: s}
	transport := &http.Transport{DialContext: p.dial, MaxIdleConnsPerHost: 4}
	served := make(chan struct{})
	go func() { defer close(served); _ = web.Serve(p) }()
	r = rigOf(t, s, "http://server.test", &http.Client{Transport: transport})
	return r, p, func() {
		r.stop()
		transport.CloseIdleConnections()
		close(p.done)
		_ = web.Close()
		<-served
	}
}

// testLog is a log and what was written to it.
func testLog() (*slog.Logger, func() string) {
	var b lockedBuffer
	return slog.New(slog.NewTextHandler(&b, nil)), b.String
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	return kit.Under(&l.mu, func() string { return l.b.String() })
}

// receive takes from a channel, but does not wait for ever.
func receive[T any](t testing.TB, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(5 * time.Minute):
		t.Fatal("nothing came")
	}
	return v
}

// pass lets fake time pass. Only for tests in a bubble.
func pass(d time.Duration) { <-time.After(d) }
