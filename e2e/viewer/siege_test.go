//go:build unix

package viewer_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

const (
	// siegeMemory bounds the server's memory under all attacks at once. Two bodies of the largest size are taken at a
	// time.
	siegeMemory = 600 << 20
	idleConns   = 5000
	mostConns   = 2048      // that the server keeps, unless it is configured otherwise
	bombBytes   = 400 << 20 // more than a request may have
)

// siege is a server, a member who behaves, and a member who does not.
type siege struct {
	*site
	t       testing.TB
	addr    string
	mallory string // key
}

func newSiege(t testing.TB, args ...string) *siege {
	t.Helper()
	s := newSite(t, args...)
	s.mustAdmin(t, "user", "add", "mallory")
	_, addr, _ := strings.Cut(s.url, "://")
	return &siege{s, t, addr, s.mustAdmin(t, "key", "create", "--user", "mallory", "--name", "pit")}
}

// behave sends lines and reads them back until stop is closed. Each request must be answered well.
func (g *siege) behave(client *http.Client, stop <-chan struct{}) (done func() []time.Duration) {
	var took []time.Duration
	var wg sync.WaitGroup
	x := where("11111111-0000-4000-8000-000000000001", "harbour", false)
	began := make(chan struct{})
	wg.Go(func() {
		for n := 0; ; n++ {
			line := fmt.Sprintf(`{"type":"user","uuid":"u%d","message":{"role":"user","content":"line %d"}}`, n, n)
			body, err := x.body([]string{line}, int64(n))
			if err != nil {
				g.t.Error(err)
			}
			start := time.Now()
			g.good(client, "POST", "/api/conversations", body)
			g.good(client, "GET", "/api/sessions/"+x.id+"/digest", nil)
			took = append(took, time.Since(start))
			if n == 2 {
				close(began)
			}
			select {
			case <-stop:
				if n > 2 {
					return
				}
			case <-time.After(20 * time.Millisecond): // as lines come
			}
		}
	})
	<-began
	return func() []time.Duration { wg.Wait(); return took }
}

// good is a request of the one who behaves, and what it is answered.
func (g *siege) good(client *http.Client, method, path string, body []byte) string {
	req, err := http.NewRequest(method, g.url+path, bytes.NewReader(body))
	if err != nil {
		g.t.Error(err)
		return ""
	}
	req.Header.Set("X-API-Key", g.key)
	res, err := client.Do(req)
	if err != nil {
		g.t.Errorf("who behaves was not answered: %v", err)
		return ""
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		g.t.Errorf("who behaves was answered %d: %s (%v)", res.StatusCode, answer, err)
	}
	return string(answer)
}

// TestSiege attacks the built server in many ways at once. Who behaves must not notice, and memory stays bounded.
func TestSiege(t *testing.T) {
	t.Parallel()
	g := newSiege(t)
	stop := make(chan struct{})
	done := g.behave(&http.Client{Timeout: patience, Transport: &http.Transport{}}, stop)
	var wg sync.WaitGroup
	for _, attack := range []func(){g.hugeBodies, g.bombs, g.slowHeaders, g.slowBodies, g.nonsense} {
		wg.Go(attack)
	}
	wg.Wait()
	g.idle() // apart: space for these is made by closing such as the slow ones
	close(stop)
	report(g, done())
}

func report(g *siege, took []time.Duration) {
	g.t.Helper()
	slices.Sort(took)
	peak := g.peak(g.t)
	g.t.Logf("who behaves: %d times stored and read, p50 %s, longest %s; the server's memory: at most %d MB",
		len(took), took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond), peak>>20)
	if peak > siegeMemory {
		g.t.Errorf("the server took %d MB", peak>>20)
	}
}

// spaces are blanks without an end, which count what was taken.
type spaces struct{ left, taken int64 }

func (s *spaces) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), s.left))
	for i := range p[:n] {
		p[i] = ' '
	}
	s.left -= int64(n)
	s.taken += int64(n)
	return n, nil
}

// hugeBodies sends 5 GB, with the length given and without, with a key and without.
func (g *siege) hugeBodies() {
	var wg sync.WaitGroup
	for _, c := range []struct {
		key    string
		length int64
	}{{g.mallory, 5 << 30}, {g.mallory, -1}, {g.mallory, -1}, {g.mallory, -1}, {"", 5 << 30}, {"wrong", -1}} {
		wg.Go(func() {
			body := &spaces{left: 5 << 30}
			req, err := http.NewRequest(http.MethodPost, g.url+"/api/conversations", body)
			if err != nil {
				g.t.Error(err)
				return
			}
			req.ContentLength = c.length
			req.Header.Set("X-API-Key", c.key)
			// Cut off while it still sends, a client sees either the answer or the connection's end.
			if res, err := (&http.Client{Transport: &http.Transport{}}).Do(req); err == nil {
				res.Body.Close()
				if res.StatusCode < 400 {
					g.t.Errorf("5 GB were answered %d", res.StatusCode)
				}
			}
			if most := int64(200 << 20); body.taken > most || c.key != g.mallory && body.taken > 32<<20 {
				g.t.Errorf("%d MB were taken of a body of 5 GB (key %q)", body.taken>>20, c.key)
			}
		})
	}
	wg.Wait()
}

// bombs sends little that becomes much.
func (g *siege) bombs() {
	var gz, zs bytes.Buffer
	zw, err := zstd.NewWriter(&zs)
	if err != nil {
		g.t.Error(err)
		return
	}
	for _, w := range []io.WriteCloser{gzip.NewWriter(&gz), zw} {
		_, err := io.Copy(w, &spaces{left: bombBytes})
		if err := errors.Join(err, w.Close()); err != nil {
			g.t.Error(err)
			return
		}
	}
	window := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00} // a frame that wants 2 GiB to be kept
	for range 4 {
		for encoding, bombs := range map[string][][]byte{"gzip": {gz.Bytes()}, "zstd": {zs.Bytes(), window, bytes.Repeat(window, 1000)}} {
			for _, bomb := range bombs {
				status, answer, err := g.ask("POST", "/api/conversations", g.mallory, encoding, bomb)
				if err == nil && status/100 != 4 && status != http.StatusServiceUnavailable {
					g.t.Errorf("a %s bomb was answered %d: %s", encoding, status, answer)
				}
			}
		}
	}
}

// slowHeaders are clients that never come to the end of their headers; they are cut off.
func (g *siege) slowHeaders() {
	g.trickles(200, "POST /api/conversations HTTP/1.1\r\nHost: x\r\nX-Slow: ")
}

// slowBodies are clients that never come to the end of their bodies.
func (g *siege) slowBodies() {
	g.trickles(30, "POST /api/conversations HTTP/1.1\r\nHost: x\r\nX-API-Key: "+g.mallory+"\r\nContent-Length: 1000000\r\n\r\n{")
}

func (g *siege) trickles(n int, begin string) {
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for range n {
		wg.Go(func() {
			if err := trickle(ctx, g.addr, begin); err != nil {
				g.t.Error(err)
			}
		})
	}
	wg.Wait()
}

// trickle sends a byte now and then until it is refused or cut off, which is what shall happen.
func trickle(ctx context.Context, addr, begin string) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
			res.Body.Close()
		}
	}()
	_, err = io.WriteString(conn, begin)
	for tick := time.NewTicker(100 * time.Millisecond); err == nil; {
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
			return errors.New("a slow client was never cut off")
		case <-tick.C:
			_, err = conn.Write([]byte(" "))
		}
	}
	return nil // writing fails: cut off
}

// idle opens thousands of connections that say nothing, and keeps them.
func (g *siege) idle() {
	var limit syscall.Rlimit
	n := idleConns
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil && uint64(n+1000) > limit.Cur {
		n = int(limit.Cur / 2)
	}
	var open []net.Conn
	defer func() {
		for _, conn := range open {
			_ = conn.Close()
		}
	}()
	for range n {
		conn, err := net.DialTimeout("tcp", g.addr, patience)
		if err != nil {
			g.t.Errorf("connection %d: %v", len(open), err)
			return
		}
		open = append(open, conn)
	}
	// The last one is answered when all before have been taken: by then the first ones must have given way.
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	metrics := g.good(client, "GET", "/metrics", nil)
	_, rest, _ := strings.Cut(metrics, "\nccship_server_connections ")
	var kept int
	if _, err := fmt.Sscan(rest, &kept); err != nil || kept > mostConns {
		g.t.Errorf("of %d idle connections %d are kept (%v)", n, kept, err)
	}
}

// nonsense sends what is no HTTP, and JSON that is deep, or wrong in every way.
func (g *siege) nonsense() {
	for _, junk := range []string{"\x16\x03\x01\x02\x00\x01\x00", "\x00\x00\x00", "GET\r\n\r\n", strings.Repeat("A", 200_000), "GET / HTTP/9.9\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"POST /api/conversations HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nffffffffffffffff\r\n"} {
		throw(g.t, g.addr, []byte(junk))
	}
	for _, body := range []string{strings.Repeat("[", 20<<20), `{"session_id":"x","entries":` + strings.Repeat(`{"a":`, 4<<20), `{"session_id":"x","entries":[` + strings.Repeat(`{"line_index":0},`, 200_000) + `{}]}`,
		`{"session_id":"x","entries":[{"line_index":-1}]}`, `{"session_id":"x","entries":[{"line_index":1e99}]}`, "\xff\xfe", "null", ""} {
		status, answer, err := g.ask("POST", "/api/conversations", g.mallory, "", []byte(body))
		if err != nil || status/100 != 4 && status != http.StatusServiceUnavailable {
			g.t.Errorf("%.30q was answered %d %s %v", body, status, answer, err)
		}
	}
}

// throw sends bytes and waits for the connection's end.
func throw(t testing.TB, addr string, junk []byte) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	_, _ = conn.Write(junk) // it may be cut off in the middle
	_ = conn.(*net.TCPConn).CloseWrite()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	_, err = io.Copy(io.Discard, conn)
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		t.Errorf("after %.20q the connection stays open", junk)
	}
}

// TestSiegeTLS throws garbage at a server that speaks TLS, and begins handshakes that it never ends.
func TestSiegeTLS(t *testing.T) {
	t.Parallel()
	cert, key, pool := certificate(t)
	g := newSiege(t, "--tls-cert", cert, "--tls-key", key)
	client := &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	stop := make(chan struct{})
	done := g.behave(client, stop)
	junk := make([]byte, 64<<10)
	for i := range 300 {
		_, _ = rand.Read(junk) // never fails
		switch i % 4 {
		case 0:
			throw(t, g.addr, junk)
		case 1:
			throw(t, g.addr, append([]byte{0x16, 0x03, 0x01, 0x40, 0x00, 0x01}, junk...)) // a hello of nonsense
		case 2:
			throw(t, g.addr, []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
		case 3:
			conn, err := net.Dial("tcp", g.addr)
			must(t, err)
			t.Cleanup(func() { _ = conn.Close() })
			_, _ = conn.Write([]byte{0x16, 0x03, 0x01, 0x01, 0x00, 0x01, 0x00}) // the beginning of a hello
		}
	}
	close(stop)
	report(g, done())
}
