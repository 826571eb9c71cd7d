package web_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestExportSlowReaders: readers of exports who take none of what they asked for hold up no pages.
func TestExportSlowReaders(t *testing.T) {
	s := loggedIn(t)
	var lines []string
	for range 16 {
		lines = append(lines, fmt.Sprintf(`{"type":"user","message":{"role":"user","content":%q}}`, strings.Repeat("wombat ", 200_000)))
	}
	s.put(t, head("slow"), lines...)
	here, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	cookie := s.client.Jar.Cookies(here)[0]
	for i := range 16 {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		format := []string{"jsonl", "html", "json", "md"}[i%4]
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\n\r\n", sessionPath("slow", "/export", "format", format), s.Listener.Addr(), cookie); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReaderSize(conn, 16).ReadString('\n')
		if err != nil || !strings.Contains(line, "200") {
			t.Fatalf("%q %v", line, err)
		}
	}
	if a := s.do(t, "GET", sessionPath("slow", "/entry/3"), nil, nil); a.code != http.StatusOK {
		t.Errorf("a page next to slow readers: %d", a.code)
	}
	whole := s.get(t, sessionPath("slow", "/export", "format", "jsonl"))
	if whole != strings.Join(lines, "\n")+"\n" {
		t.Errorf("the export has %d bytes", len(whole))
	}
}
