//go:build unix

package viewer_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ccship/ccship/e2e/kit"
)

const (
	// siegeMemory bounds the server's memory under all attacks at once. Two bodies of the largest size are taken at a
	// time.
	siegeMemory = 600 << 20
	bombBytes   = 400 << 20 // more than a request may have
)

// TestSiege throws all at once what the server must refuse: its memory stays bounded, and who behaves is answered.
func TestSiege(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.mustAdmin(t, "user", "add", "mallory")
	mallory := s.mustAdmin(t, "key", "create", "--user", "mallory", "--name", "pit")
	var wg sync.WaitGroup
	wg.Go(func() { bombs(t, s, mallory) })
	wg.Go(func() { nonsense(t, s, mallory) })
	x := where("11111111-0000-4000-8000-000000000001", "harbour", false)
	for range 50 {
		err := s.send(s.key, x, []string{`{"type":"user","uuid":"u","message":{"role":"user","content":"go on"}}`})
		kit.Check(t, err == nil, "who behaves: %v", err)
	}
	wg.Wait()
	peak := s.peak(t)
	t.Logf("the server's memory: at most %d MB", peak>>20)
	kit.Check(t, peak <= siegeMemory, "the server took %d MB", peak>>20)
}

// refused posts a body that the server must not take.
func refused(t *testing.T, s *site, key, encoding string, body []byte) {
	t.Helper()
	status, answer, err := s.ask("POST", "/api/conversations", key, encoding, body)
	if err != nil && encoding != "" {
		return // cut off while it still sends
	}
	kit.Check(t, err == nil && (status/100 == 4 || status == http.StatusServiceUnavailable),
		"%s %.30q was answered %d %s %v", encoding, body, status, answer, err)
}

// bombs sends little that becomes much.
func bombs(t *testing.T, s *site, key string) {
	var gz, zs bytes.Buffer
	zw, err := zstd.NewWriter(&zs)
	if err != nil {
		t.Error(err)
		return
	}
	blank := bytes.Repeat([]byte(" "), 1<<20)
	for _, w := range []io.WriteCloser{gzip.NewWriter(&gz), zw} {
		for range bombBytes >> 20 {
			_, _ = w.Write(blank) // Close reports what went wrong
		}
		if err := w.Close(); err != nil {
			t.Error(err)
			return
		}
	}
	window := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00} // a frame that wants 2 GiB to be kept
	for range 4 {
		refused(t, s, key, "gzip", gz.Bytes())
		for _, bomb := range [][]byte{zs.Bytes(), window, bytes.Repeat(window, 1000)} {
			refused(t, s, key, "zstd", bomb)
		}
	}
}

// nonsense sends what is no HTTP, and JSON that is deep, or wrong in every way.
func nonsense(t *testing.T, s *site, key string) {
	_, addr, _ := strings.Cut(s.url, "://")
	for _, junk := range []string{"\x16\x03\x01\x02\x00\x01\x00", "\x00\x00\x00", "GET\r\n\r\n", strings.Repeat("A", 200_000), "GET / HTTP/9.9\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"POST /api/conversations HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nffffffffffffffff\r\n"} {
		throw(t, addr, []byte(junk))
	}
	for _, body := range []string{strings.Repeat("[", 20<<20), `{"session_id":"x","entries":` + strings.Repeat(`{"a":`, 4<<20), `{"session_id":"x","entries":[` + strings.Repeat(`{"line_index":0},`, 200_000) + `{}]}`,
		`{"session_id":"x","entries":[{"line_index":-1}]}`, `{"session_id":"x","entries":[{"line_index":1e99}]}`, "\xff\xfe", "null", ""} {
		refused(t, s, key, "", []byte(body))
	}
}

// throw sends bytes and waits for the connection's end.
func throw(t *testing.T, addr string, junk []byte) {
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
	late, ok := errors.AsType[net.Error](err)
	kit.Check(t, !ok || !late.Timeout(), "after %.20q the connection stays open", junk)
}
