package api_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api"
	"github.com/ccship/ccship/server/auth"
)

// siege is a server on a real listener, with a client that behaves and must never fail.
type siege struct {
	*rig
	addr string
	url  string
	stop func()
}

func newSiege(t *testing.T, set func(*api.Server)) *siege {
	t.Helper()
	r := newRig(t)
	s := api.New(r.store, auth.New(r.store, discard()), server.NewHub(r.store))
	s.Patience = 10 * time.Minute
	set(s)
	ln := kit.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { kit.Err(t, "run", nil)(s.Run(ctx, ln)) })
	g := &siege{rig: r, addr: ln.Addr().String(), url: "http://" + ln.Addr().String()}
	g.stop = func() { cancel(); wg.Wait() }
	t.Cleanup(g.stop)
	return g
}

// behave sends lines with a key of its own until end is called, and fails the test if one is not taken at once.
func (g *siege) behave() (end func()) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	good := g.person("good", server.Member)
	began := make(chan struct{})
	wg.Go(func() {
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		for i := 0; ; i++ {
			body := piece{first: int64(i), lines: objects("a", i, i+1)}.body("good")
			req, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, g.url+"/api/conversations", strings.NewReader(body))
			if err != nil {
				g.t.Error(err)
				return
			}
			req.Header.Set("X-API-Key", good.key)
			res, err := client.Do(req)
			if err != nil {
				g.t.Errorf("the good client's request %d: %v", i, err)
			} else {
				kit.Equal(g.t, fmt.Sprint("the good client's request ", i), res.StatusCode, http.StatusOK)
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
			if i == 3 {
				close(began)
			}
			select {
			case <-stop:
				if i > 3 {
					return
				}
			default:
			}
		}
	})
	<-began
	return func() { close(stop); wg.Wait() }
}

// endless is a body of spaces, which counts what was taken.
type endless struct {
	left  int64
	taken atomic.Int64 // also read while a transport still reads from it
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), e.left))
	for i := range p[:n] {
		p[i] = ' '
	}
	e.left -= int64(n)
	e.taken.Add(int64(n))
	return n, nil
}

// TestHugeBody: of 5 GB little more than the limit is read, whether they are announced or not.
func TestHugeBody(t *testing.T) {
	g := newSiege(t, func(s *api.Server) { s.MaxBody = 1 << 20 })
	defer g.behave()()
	for _, length := range []int64{5 << 30, -1} {
		body := &endless{left: 5 << 30}
		req := kit.Try(http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+"/api/conversations", body)).Must(t)
		req.ContentLength = length
		req.Header.Set("X-API-Key", g.key)
		// Cut off while it still sends, a client sees either the answer or the connection's end.
		res, err := (&http.Client{Transport: &http.Transport{}}).Do(req)
		if err == nil {
			res.Body.Close()
			kit.Equal(t, "status", res.StatusCode, http.StatusRequestEntityTooLarge)
		}
		n := body.taken.Load()
		kit.Check(t, n <= 64<<20, "%d bytes were taken", n)
	}
}

// TestBombs: little that becomes much is refused as too large.
func TestBombs(t *testing.T) {
	g := newSiege(t, func(s *api.Server) { s.MaxBody = 1 << 20 })
	defer g.behave()()
	var gz, zs bytes.Buffer
	gw := gzip.NewWriter(&gz)
	zw := kit.Try(zstd.NewWriter(&zs)).Must(t)
	for _, w := range []io.WriteCloser{gw, zw} {
		kit.Try(io.Copy(w, &endless{left: 64 << 20})).Must(t)
		kit.Must(t, w.Close())
	}
	for encoding, bomb := range map[string][]byte{"gzip": gz.Bytes(), "zstd": zs.Bytes()} {
		kit.Require(t, len(bomb) <= 1<<20, "the %s bomb is of %d bytes", encoding, len(bomb))
		kit.Equal(t, encoding, g.attack(encoding, bomb), http.StatusRequestEntityTooLarge)
	}
}

// attack posts a body to the listener under siege.
func (g *siege) attack(encoding string, body []byte) int {
	g.t.Helper()
	req := kit.Try(http.NewRequestWithContext(g.t.Context(), http.MethodPost, g.url+"/api/conversations", bytes.NewReader(body))).Must(g.t)
	req.Header.Set("X-API-Key", g.key)
	req.Header.Set("Content-Encoding", encoding)
	res := kit.Try(http.DefaultClient.Do(req)).Must(g.t)
	defer res.Body.Close()
	return res.StatusCode
}

// TestSlowloris: clients that send a byte now and then, in headers and in bodies, are cut off; one that behaves does
// not notice.
func TestSlowloris(t *testing.T) {
	g := newSiege(t, func(s *api.Server) { s.MaxRequests, s.Patience = 4, 10*time.Second })
	defer g.behave()()
	var slow sync.WaitGroup
	head := "POST /api/conversations HTTP/1.1\r\nHost: x\r\nX-API-Key: " + g.key + "\r\n"
	for i := range 40 {
		begin := head
		if i%2 == 0 {
			begin += "Content-Length: 1000000\r\n\r\n{"
		}
		slow.Go(func() {
			err := trickle(t.Context(), g.addr, begin)
			kit.Check(t, err != nil, "a slow client was not cut off")
		})
	}
	slow.Wait()
}

// trickle writes what begins a request and then a byte now and then, until the connection ends; that is its error.
func trickle(ctx context.Context, addr, begin string) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, begin); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		in := bufio.NewReader(conn)
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			ended <- err
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusRequestTimeout && res.StatusCode != http.StatusServiceUnavailable {
			ended <- nil
			return
		}
		ended <- fmt.Errorf("status %d", res.StatusCode)
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if _, err := conn.Write([]byte(" ")); err != nil {
				return err
			}
		}
	}
}

// TestIdleConnections opens two thousand connections that say nothing: the ones idle longest are closed, and one that
// behaves does not notice.
func TestIdleConnections(t *testing.T) {
	const bound = 100
	g := newSiege(t, func(s *api.Server) { s.MaxConns = bound })
	defer g.behave()()
	var open []net.Conn
	closed := 0
	for range 2000 {
		conn := kit.Try(net.Dial("tcp", g.addr)).Must(t)
		open = append(open, conn)
		if len(open) > 2*bound {
			// The oldest must have been closed by the server: a read ends, and not for time.
			_ = open[0].SetReadDeadline(time.Now().Add(5 * time.Minute))
			_, err := open[0].Read(make([]byte, 1))
			late, ok := errors.AsType[net.Error](err)
			kit.Require(t, err != nil && (!ok || !late.Timeout()), "an idle connection stays: %v", err)
			closed++
			_ = open[0].Close()
			open = open[1:]
		}
	}
	for _, conn := range open {
		_ = conn.Close()
	}
	kit.Check(t, closed >= 1700, "%d were closed", closed)
}

// TestDeafListener: a listener that reads nothing is cut off, and delays no other.
func TestDeafListener(t *testing.T) {
	owner := newRig(t)
	conn := kit.Try(net.Dial("tcp", owner.http.Listener.Addr().String())).Must(t)
	defer conn.Close()
	kit.Must(t, conn.(*net.TCPConn).SetReadBuffer(1))
	kit.Try(io.WriteString(conn, "GET /api/events HTTP/1.1\r\nHost: x\r\nX-API-Key: "+owner.key+"\r\n\r\n")).Must(t)
	listener := owner.listen("", nil)
	long := strings.Repeat("x", 1000)
	for i := range 400 {
		owner.post(piece{lines: objects("a", 0, 1)}.body(fmt.Sprint(long, i)))
	}
	for i := range 400 {
		c := listener.change()
		kit.Require(t, c["session_id"] == fmt.Sprint(long, i), "change %d is of another session", i)
	}
}

// TestWaitOutlivesRole: a request that waits for its turn while its user stops being an owner is done as whoever the
// user is then.
func TestWaitOutlivesRole(t *testing.T) {
	owner := newRig(t, func(s *api.Server) {
		api.SetBeat(s, time.Minute)
		s.MaxRequests, s.Patience = 4, 10*time.Minute // two for each user
	})
	ann, eve := owner.person("ann", server.Member), owner.person("eve", server.Owner)
	ann.post(piece{lines: objects("a", 0, 3)}.body("s"))
	ctx, end := context.WithCancel(t.Context())
	var slow sync.WaitGroup
	for range 2 {
		in, out := io.Pipe()
		req := kit.Try(http.NewRequestWithContext(ctx, http.MethodPost, owner.http.URL+"/api/keys", in)).Must(t)
		req.Header.Set("X-API-Key", eve.key)
		defer context.AfterFunc(ctx, func() { _ = out.CloseWithError(ctx.Err()) })()
		slow.Go(func() {
			res, err := owner.http.Client().Do(req)
			if err == nil {
				res.Body.Close()
			}
		})
		kit.Try(io.WriteString(out, `{"nam`)).Must(t)
	}
	until := func(metric string) {
		t.Helper()
		for !strings.Contains(string(owner.get("/metrics").body), metric) {
			kit.Must(t, t.Context().Err())
		}
	}
	until("ccship_server_slots_busy 2\n")
	status := make(chan int, 1)
	go func() { status <- eve.do("DELETE", "/api/sessions/s?user=ann", nil, nil).status }()
	until("ccship_server_requests_in_work 4\n") // with the one that asks
	owner.send("PATCH", "/api/users/eve", `{"role":"member"}`, 200)
	end()
	slow.Wait()
	kit.Equal(t, "the session of another is deleted by who was an owner", <-status, http.StatusNotFound)
	ann.send("GET", "/api/sessions/s", "", 200)
}

// TestDownloadOutlivesKey: a download ends once its key is revoked, its user disabled or no owner any more. It is longer
// than what connections take before they are read.
func TestDownloadOutlivesKey(t *testing.T) {
	owner := newRig(t, func(s *api.Server) { api.SetBeat(s, time.Minute) })
	const lines, length = 24, 1 << 20
	for i := range lines {
		owner.post(piece{first: int64(i), lines: []string{fmt.Sprintf(`{"pad":%q}`, strings.Repeat("x", length))}}.body("s"))
	}
	for i, c := range []struct{ path, method, call, body string }{
		{"raw?user=owner", "DELETE", "/api/keys/eve's%20key", ""},
		{"export?user=owner", "PATCH", "/api/users/eve", `{"disabled":true}`},
		{"raw?user=owner", "PATCH", "/api/users/eve", `{"role":"member"}`},
	} {
		name := fmt.Sprint("eve", i)
		eve := owner.person(name, server.Owner)
		req := kit.Try(http.NewRequestWithContext(t.Context(), http.MethodGet, owner.http.URL+"/api/sessions/s/"+c.path, nil)).Must(t)
		req.Header.Set("X-API-Key", eve.key)
		req.Header.Set("Accept-Encoding", "identity")
		res := kit.Try(owner.http.Client().Do(req)).Must(t)
		kit.Equal(t, "status", res.StatusCode, http.StatusOK)
		owner.send(c.method, strings.Replace(c.call, "eve", name, 1), c.body, http.StatusOK)
		n, err := io.Copy(io.Discard, res.Body)
		kit.Check(t, err != nil && n < lines*length, "after %s %s %s: %d bytes come, %v", c.method, c.call, c.body, n, err)
		res.Body.Close()
	}
}
